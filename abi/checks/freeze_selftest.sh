#!/usr/bin/env bash
# Proves that a release that has shipped is held. A copy of the tree commits the frozen folder as if
# the release had shipped; there nothing freezes any more, and a change that breaks the release
# turns its gates red and leaves the frozen files as they were. The gates tried need no build: those
# of the spec, of the layouts and of the frozen files. Half a minute.
#
#   freeze_selftest.sh SOURCE_DIR FROZEN_DIR WORK_DIR
set -eu
source=$1 frozen=$2 work=$3
release=$(basename "$frozen") misses=0
tree=$work/tree build=$work/build
rm -rf "$work"
mkdir -p "$tree"
(cd "$source" && git ls-files -co --exclude-standard -z |
  tar --null --ignore-failed-read -cf - -T -) | tar -xf - -C "$tree"
rm -rf "${tree:?}/abi/$release"
cp -r "$frozen" "$tree/abi/$release"

commit() {
  git -C "$tree" add -A
  git -C "$tree" -c user.name=a -c user.email=a@localhost -c core.hooksPath=/dev/null commit \
    -qm "$1"
}
git -C "$tree" init -q
commit "as if $release had shipped"
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >"$work/configured" || {
  cat "$work/configured"
  exit 1
}

gates() { # gates [PATTERN]: those that need no build, or some of them
  ctest --test-dir "$build" -R "^abi\.(spec_policy|frozen\.kept|frozen\.locks)\.${1:-}" \
    --no-tests=error --output-on-failure \
    >"$work/log" 2>&1
}
missed() {
  echo "MISSED: $*"
  cat "$work/log"
  misses=$((misses + 1))
}

: >"$work/log"
! grep -qE '^build freeze:' "$build/build.ninja" || missed "there is a target that freezes"
! ctest --test-dir "$build" -N | grep -qE ' abi\.freeze$' ||
  missed "a test freezes the tree that is under test"
gates || missed "a gate is red before anything is broken"

breaks() { # breaks NAME SED_EXPRESSION FILE..
  local name=$1 expression=$2
  shift 2
  for file in "$@"; do
    sed -i -E "$expression" "$tree/$file"
    ! git -C "$tree" diff --quiet -- "$file" || missed "$name changes nothing in $file"
  done
  if gates; then
    missed "$name: all gates green"
  else
    echo "$name: $(sed -n 's/.*[0-9]* - \(abi[^ ]*\) .*/\1/p' "$work/log" | tr '\n' ' ')"
  fi
  written=$(git -C "$tree" status --porcelain "abi/$release" | cut -c4- |
    grep -vxF "$(printf '%s\n' "$@")" || true)
  [ -z "$written" ] || missed "$name: the gates wrote $written"
  git -C "$tree" checkout -q .
}

breaks 'kinds renumbered' 's/VELO_RECOMPUTE_SELECTIVE = 2/VELO_RECOMPUTE_SELECTIVE = 32/' \
  capi/include/velo/recompute.h
breaks 'an error code dropped' '/VELO_ERR_FULL = /d' capi/include/velo/status.h
breaks 'an entry of the spec edited' \
  's/"name": "VELO_ERR_SHAPE", "code": [0-9]+/"name": "VELO_ERR_SHAPE", "code": 99/' \
  abi/spec/core.json
breaks 'a frozen file edited' 's/./& /' "abi/$release/stub.c"

# The next release is under way: what has shipped is held beside the release that has not.
next=${release%.*}.$((${release#*.} + 1))
sed -i -E "s/^(project\(velo VERSION )$release\./\1$next./" "$tree/CMakeLists.txt"
commit "towards $next"
cmake "$build" >"$work/log" 2>&1 || missed "the tree of $next is not configured"
for held in "$release" "$next"; do
  ctest --test-dir "$build" -N | grep -q " abi\.frozen\.client\.$held$" ||
    missed "$held is not held in the tree of $next"
done
grep -q "/abi/freeze.sh --candidate $build/abi/$next " "$build/build.ninja" ||
  missed "$next is not frozen in the build of its tree"
sed -i '/VELO_ERR_FULL = /d' "$tree/capi/include/velo/status.h"
if gates "$release"; then missed "the tree of $next may break $release"; fi
[ $misses -eq 0 ]
