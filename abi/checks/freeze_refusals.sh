#!/usr/bin/env bash
# Proves that freeze.sh refuses what would spoil a release, says why, and leaves no folder behind: a
# folder that is there already or is named after another release, a tree with changes, a build of
# another tree or of another type, another library in the place of libvelo.so, one without debug
# information, a tool that is missing or fails. And that it freezes this build's library and
# generator's output, whatever else of their names lies around.
#
#   freeze_refusals.sh SOURCE_DIR BUILD_DIR WORK_DIR
set -eu
source=$1 build=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
release=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["release"])' "$source/abi/spec/ops.json")
mkdir -p "$work/there/$release" "$work/new"

refuses() { # refuses WORDS ARGUMENTS..
  local words=$1
  shift
  if "$freeze" "$@" >"$work/message" 2>&1; then
    echo "freeze.sh accepts $*"
    exit 1
  fi
  grep -q -- "$words" "$work/message" || {
    echo "freeze.sh $*: not refused for '$words':"
    cat "$work/message"
    exit 1
  }
  [ -z "$(ls -A "$work/new")" ] || { echo "freeze.sh $*: leaves $(ls -A "$work/new")"; exit 1; }
}

# A build folder that differs from the real one in its cache, or in its library.
another() { # another NAME CACHE_EDIT
  mkdir -p "$work/$1/capi" "$work/$1/abi/generated"
  sed "$2" "$build/CMakeCache.txt" >"$work/$1/CMakeCache.txt"
  ln -s "$build/abi/velo_gen" "$work/$1/abi/"
  echo 'of another build' |
    tee "$work/$1/abi/generated/stub.c" >"$work/$1/abi/generated/layout_lock.c"
  cp "$build/capi/libvelo.so.1" "$work/$1/capi/"
}

freeze=$source/abi/freeze.sh
new=$work/new/$release
another same ''
another elsewhere 's|^CMAKE_HOME_DIRECTORY.*|CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere|'
another unoptimized 's|^CMAKE_BUILD_TYPE:.*|CMAKE_BUILD_TYPE:STRING=Debug|'
another adapters ''
another stripped ''
cp "$build/capi/adapters/libvelo_adapters.so.1" "$work/adapters/capi/libvelo.so.1"
strip "$build/capi/libvelo.so.1" -o "$work/stripped/capi/libvelo.so.1"

refuses 'a release is frozen once' --candidate "$work/there/$release" "$build"
refuses "states release $release" --candidate "$work/new/9.9" "$build"
refuses 'a release that ships is frozen in' "$new" "$build"
refuses 'is no build folder' --candidate "$new" "$work/there"
refuses 'is a build of /elsewhere' --candidate "$new" "$work/elsewhere"
refuses 'no build of the preset release' --candidate "$new" "$work/unoptimized"
refuses 'is not the library of this tree' --candidate "$new" "$work/adapters"
refuses 'no debug information' --candidate "$new" "$work/stripped"

# A tool that is missing is named before anything is made; one that fails half way leaves nothing.
mkdir "$work/tools"
ln -s /usr/bin/* "$work/tools/"
for place in /usr/local/bin/cmake /usr/local/bin/git; do
  [ ! -x "$place" ] || ln -sf "$place" "$work/tools/"
done
rm "$work/tools/abidw"
(PATH=$work/tools && refuses 'abidw is missing' --candidate "$new" "$build")
printf '#!/bin/sh\necho broken tool\nexit 1\n' >"$work/tools/abidw"
chmod +x "$work/tools/abidw"
(PATH=$work/tools && refuses 'broken tool' --candidate "$new" "$build")

# A tree with a change, under version control.
mkdir "$work/tree"
cp -r "$source/abi" "$work/tree/"
rm -rf "${work:?}/tree/abi/$release"
git -C "$work/tree" init -q
freeze=$work/tree/abi/freeze.sh
refuses 'the tree is not clean' "$work/tree/abi/$release" "$build"
[ ! -e "$work/tree/abi/$release" ]

# From a folder with other libraries of the same name, such as a tree that ran its tests has.
freeze=$source/abi/freeze.sh
mkdir -p "$work/around/build/a"
cc -shared -fPIC -g -xc - -o "$work/around/build/a/libvelo.so.1" \
  <<<'int velo_version(void) { return 0; }'
(cd "$work/around" && "$freeze" --candidate "$new" "$work/same")
"$source/abi/checks/abigail_write.sh" "$build/capi/libvelo.so.1" "$source/capi/include" \
  "$work/named.abi"
gunzip -c "$new/velo.abi.gz" | cmp - "$work/named.abi" || {
  echo "freeze.sh froze another library"
  exit 1
}
! grep -rl 'of another build' "$new" || { echo "freeze.sh froze files of another build"; exit 1; }
