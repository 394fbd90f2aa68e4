#!/usr/bin/env bash
# Installs the build into an empty prefix, moves the prefix, and uses velo from there as a stranger
# would.
#
#   package_test.sh MODE BUILD_DIR WORK_DIR SOURCE_DIR, where MODE is
#     install       what lies where after the installation
#     find_package  a CMake project of its own: every installed example, C and C++, and velo opened
#     pkg_config    plain compilers with pkg-config's flags
#     absolute      pkg-config's files where the library's folder is not below the prefix
#     subproject    the sources inside another project, whose warnings are its own affair; and
#                   decoder in a project over it
set -eu
mode=$1 build=$2 work=$3/$1 source=$4
prefix=$work/prefix
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$prefix" >"$work/install.log"
libdir=$(dirname "$(find "$prefix" -name libvelo.so.1)")

fail() {
  echo "FAILED: $*"
  exit 1
}

# Both greetings must print the same numbers: 1..4 over their root mean square.
greets() {
  "$@" >"$work/printed" 2>"$work/complained" || fail "$* exits $?: $(cat "$work/complained")"
  head -1 "$work/printed" | grep -qx '0.3651 0.7303 1.0954 1.4606' ||
    fail "$* printed $(cat "$work/printed")"
  cat "$work/printed" "$work/complained" | grep -q gamma ||
    fail "$* did not name the wrong argument"
}

case $mode in
subproject)
  mkdir "$work/outer"
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(outer C CXX)\nadd_subdirectory(%s velo)\n' \
    "$source" >"$work/outer/CMakeLists.txt"
  cmake -S "$work/outer" -B "$work/build" >"$work/configure.log" ||
    fail "$(cat "$work/configure.log")"
  grep -q 'capi/src/status.cpp' "$work/build/compile_commands.json" ||
    fail "the library is not part of the outer build"
  if grep -q -- -Werror "$work/build/compile_commands.json"; then
    fail "a warning would stop somebody else's build"
  fi
  if grep -Eq "\"file\": \"$source/(tests|tools|examples)/" \
    "$work/build/compile_commands.json"; then
    fail "tests, tools or examples are built inside another project"
  fi
  # The lines of the page on decoder make a project; what they build is tested in the tree.
  mkdir "$work/over_decoder"
  {
    printf 'cmake_minimum_required(VERSION 3.25)\nproject(over LANGUAGES C CXX)\n'
    sed -n 's|path/to/velo|'"$source"'|; /^    set(VELO_BUILD/,/^    target_link/p' \
      "$source/examples/decoder/README.md"
  } >"$work/over_decoder/CMakeLists.txt"
  printf '#include "examples/decoder/train/trainer.hpp"\nint main() {}\n' \
    >"$work/over_decoder/train.cpp"
  cmake -G "Unix Makefiles" -S "$work/over_decoder" -B "$work/over_decoder/build" \
    >"$work/configure.log" 2>&1 ||
    fail "$(cat "$work/configure.log")"
  make -C "$work/over_decoder/build" train.o >"$work/build.log" 2>&1 ||
    fail "$(cat "$work/build.log")"
  grep -q -- '-Wall.* -Werror' "$build/compile_commands.json" ||
    fail "warnings do not stop the project's own build"
  ;;
install)
  for file in include/velo/velo.h include/velo/velo.hpp include/velo/api.h \
    include/velo/detail/call.hpp \
    share/doc/velo/LICENSE share/doc/velo/README.md share/doc/velo/api.md \
      share/doc/velo/examples/c/hello.c share/velo/python/velo/torch/__init__.py; do
    [ -f "$prefix/$file" ] || fail "$file was not installed"
  done
  [ "$(readlink "$libdir/libvelo.so")" = libvelo.so.1 ] ||
    fail "libvelo.so does not lead to libvelo.so.1"
  # Exactly the public headers: as many as the tree has, and nothing private beside them.
  installed=$(cd "$prefix/include" && find . -type f | sort)
  public=$(cd "$source" && { (cd capi/include && find . -name '*.h'); (cd capi/adapters/include &&
    find . -name '*.h'); (cd cpp/include && find . -name '*.hpp'); } | sort)
  [ "$installed" = "$public" ] || fail "installed headers differ from the public ones"
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$prefix/share/velo/python python3 -c \
    "import velo.ctypes as v; v.load('$libdir/libvelo.so.1').velo_get_api" ||
      fail "the installed ctypes module finds no velo"
  "$prefix/bin/velo" ops >"$work/ops" || fail "the installed velo command does not run"
  # Files that the help texts name are there, and the manual page has every command.
  "$prefix/bin/velo" help >"$work/help"
  commands=$(sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' "$work/help" | grep -vx -e help)
  for command in $commands; do
    grep -qxF ".B ${command//-/\\-}" "$source/packaging/debian/velo.1.in" ||
      fail "the manual page lacks velo $command"
    "$prefix/bin/velo" help "$command" >>"$work/help"
  done
  [ "$(wc -w <<<"$commands")" -ge 9 ] || fail "velo help names $commands alone"
  grep -oE 'examples/[A-Za-z_/.]*[A-Za-z]' "$work/help" | sort -u >"$work/named"
  grep -qx examples/tune "$work/named" || fail "no help text names a page: $(cat "$work/named")"
  while read -r path; do [ -e "$prefix/share/doc/velo/$path" ] ||
    fail "a help text names $path, which was not installed"; done <"$work/named"
  (cd "$prefix/share/doc/velo" &&
    "$prefix/bin/velo" tune examples/tune/llama2_7b.json --accelerators 8 --top 1) >"$work/tuned" ||
    fail "an installed job is not tuned: $(cat "$work/tuned")"
  python3 -B "$source/tests/package/links_test.py" "$prefix/share/doc/velo" ||
    fail "a page leads to what was not installed"
  [ ! -f "$build/abi/reference/html/index.html" ] ||
    [ -f "$prefix/share/doc/velo/html/operators/add.html" ] ||
    fail "the reference is made, but was not installed"
  if readelf -d "$libdir/libvelo.so.1" | grep -Eq 'RPATH|RUNPATH'; then
    fail "the installed library has a run path"
  fi
  ;;
find_package)
  mv "$prefix" "$work/moved" # a CMake package does not depend on where it was installed
  libdir=${libdir/$prefix/$work/moved}
  cmake -S "$source/tests/package/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" \
    -DVELO_EXAMPLES="$work/moved/share/doc/velo/examples" >"$work/configure.log"
  cmake --build "$work/build" >"$work/build.log" || fail "$(cat "$work/build.log")"
  greets "$work/build/hello_c"
  greets "$work/build/hello_cpp"
  [ -x "$work/build/overlap_cpp" ] || fail "the examples were not built"
  if readelf -d "$work/build/opened" | grep -q libvelo; then
    fail "the opening program is linked to velo"
  fi
  "$work/build/opened" "$libdir/libvelo.so.1" | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+' ||
    fail "no version from the opened library"
  ;;
pkg_config)
  export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
  release=$(sed -n 's/^project(velo VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
  pkg-config --exact-version="$release" velo ||
    fail "pkg-config gives version $(pkg-config --modversion velo)"
  # shellcheck disable=SC2046 # the flags are words
  cc -std=c99 "$source/examples/c/hello.c" $(pkg-config --cflags --libs velo) -o "$work/hello_c"
  # shellcheck disable=SC2046
  c++ -std=c++17 "$source/examples/cpp/hello.cpp" $(pkg-config --cflags --libs velo) \
    -o "$work/hello_cpp"
  greets "$work/hello_c"
  greets "$work/hello_cpp"
  printf '#include <velo/adapters.h>\nint main(void) { uint64_t n; return velo_adapters_last_error(0, 0, &n) != VELO_OK; }\n' >"$work/adapted.c"
  # shellcheck disable=SC2046
  cc -std=c99 "$work/adapted.c" $(pkg-config --cflags --libs velo-adapters) -o "$work/adapted"
  readelf -d "$work/adapted" | grep -q 'libvelo_adapters.so.1' ||
    fail "velo-adapters.pc does not link the adapters"
  "$work/adapted" || fail "a program linked by velo-adapters.pc exits $?"
  ;;
absolute)
  cmake -S "$source" -B "$work/build" -DCMAKE_INSTALL_LIBDIR="$work/elsewhere/lib" \
    -DVELO_BUILD_TESTS=OFF \
    -DVELO_BUILD_EXAMPLES=OFF >"$work/configure.log" || fail "$(cat "$work/configure.log")"
  cmake --install "$work/build" --prefix "$work/other" --component pkgconfig >>"$work/install.log"
  for name in velo velo-adapters; do
    found=$(PKG_CONFIG_PATH=$work/elsewhere/lib/pkgconfig pkg-config --variable=libdir "$name") ||
      fail "no $name.pc in the library's folder"
    [ "$found" = "$work/elsewhere/lib" ] || fail "$name.pc says libdir=$found"
  done
  ;;
*) fail "unknown mode $mode" ;;
esac
