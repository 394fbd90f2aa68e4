#!/usr/bin/env bash
# The Debian packages really installed, by apt, in a throw-away copy of this system: an overlay over
# / in a mount namespace of its own. Exit code 77 where that is not allowed; packages_test.py says
# so.
#
#   installed_debs.sh FOLDER SOURCE   FOLDER has the packages, SOURCE the consumer and the examples
#                                     to build against them
set -eu
folder=$1 source=$2

if [ -z "${3:-}" ]; then
  top=$(mktemp -d)
  trap 'rmdir "$top"' EXIT # what was mounted there is gone with the namespace
  unshare --mount --propagation private true || exit 77 # not tested: reported there
  unshare --mount --propagation private "$0" "$folder" "$source" "$top"
  exit
fi
top=$3
fail() {
  echo "FAILED: $*"
  exit 1
}

mount -t tmpfs tmpfs "$top" || exit 77 # not tested: reported there
mkdir "$top/upper" "$top/work" "$top/root"
# not tested: reported there
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" "$top/root" ||
  exit 77
for place in proc dev; do mount --rbind "/$place" "$top/root/$place"; done
mkdir -p "$top/root/debs"
cp "$folder"/*.deb "$top/root/debs"
cp -r "$source/tests/package/consumer" "$source/examples" "$top/root/debs"
run() { env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/ LC_ALL=C DEBIAN_FRONTEND=noninteractive \
  chroot "$top/root" sh -ec "$1"; }

run 'apt-get install -y --no-install-recommends /debs/*.deb' >"$folder/apt.log" 2>&1 ||
  fail "$(cat "$folder/apt.log")"
run 'ldconfig -p' | grep -q 'libvelo_adapters.so.1 .*/lib/x86_64-linux-gnu' ||
  fail "the loader does not know the adapters"
run 'cd /debs && cc -std=c99 examples/c/hello.c $(pkg-config --cflags --libs velo) -o by_pkg_config && ./by_pkg_config 2>/dev/null' |
  grep -qx '0.3651 0.7303 1.0954 1.4606' || fail "a program built by pkg-config does not run"
run 'cmake -S /debs/consumer -B /debs/build -DVELO_EXAMPLES=/debs/examples && cmake --build /debs/build' >"$folder/consumer.log" 2>&1 ||
  fail "$(tail -5 "$folder/consumer.log")"
run '/debs/build/hello_cpp 2>/dev/null' | grep -qx '0.3651 0.7303 1.0954 1.4606' ||
  fail "a program built by find_package does not run"
run 'velo ops rms_norm' | grep -q gamma || fail "the velo command does not run"
if ls "$folder"/velo-mpi_*.deb >/dev/null 2>&1; then
  run 'velo info --no-measure' | grep -q '^transports *self local shm mpi host *$' ||
    fail "no transport over MPI"
fi
run 'PYTHONPATH=/usr/share/velo/python python3 -B -c "import velo; print(velo.library_path())"' |
  grep -q '/lib/x86_64-linux-gnu/libvelo.so' || fail "the Python modules do not find the library"
if run 'dpkg -r libvelo1' >/dev/null 2>&1; then fail "libvelo1 goes although others need it"; fi
run 'apt-get remove -y --purge libvelo1 libvelo-dev velo-tools' >"$folder/remove.log" 2>&1 ||
  fail "$(cat "$folder/remove.log")"
left=$(run 'ls -d /usr/lib/x86_64-linux-gnu/*velo* /usr/include/velo /usr/share/doc/*velo* /usr/share/velo /usr/bin/velo 2>/dev/null || true')
[ -z "$left" ] || fail "left after removal: $left"
