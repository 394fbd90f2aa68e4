#!/usr/bin/env bash
# Proves that freeze.sh refuses what would spoil a release: a folder that is there already, a library without debug information.
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
