#!/usr/bin/env bash
# Proves that freeze.sh refuses what would spoil a release (a folder that is there already, a library without debug information), and
# that it freezes the library that is named, whatever others of that name lie in the tree.
#
#   freeze_refusals.sh SOURCE_DIR LIBRARY GATE_FILES WORK_DIR
set -eu
source=$1 library=$2 gate_files=$3 work=$4
rm -rf "$work"
mkdir -p "$work/shipped"
strip "$library" -o "$work/stripped.so"

refuses() { # refuses FOLDER LIBRARY WORDS
  if "$source/abi/freeze.sh" "$1" "$2" "$gate_files" 2>"$work/message"; then
    echo "freeze.sh accepts $1 of $2"
    exit 1
  fi
  grep -q "$3" "$work/message" || { cat "$work/message"; exit 1; }
}

refuses "$work/shipped" "$library" 'a release is frozen once'
refuses "$work/new" "$work/stripped.so" 'no debug information'
[ ! -e "$work/new" ]

# A tree that ran its tests has grown, copied and empty libraries of the same name.
mkdir -p "$work/tree/build/a" "$work/tree/build/capi"
cc -shared -fPIC -g "$gate_files/stub.c" -o "$work/tree/build/a/libvelo.so.1"
cp "$library" "$work/tree/build/capi/libvelo.so.1"
(cd "$work/tree" && "$source/abi/freeze.sh" "$work/new" build/capi/libvelo.so.1 "$gate_files")
"$source/abi/checks/abigail_write.sh" "$library" "$source/capi/include" "$work/named.abi"
gunzip -c "$work/new/velo.abi.gz" | cmp - "$work/named.abi" || { echo "freeze.sh froze another library"; exit 1; }
