#!/usr/bin/env bash
# Proves that the gates of a frozen release can fail: breaks a copy of it, one way at a time, as if
# the library of today had departed from it.
#
#   frozen_selftest.sh FROZEN_DIR SOURCE_DIR LIBRARY WORK_DIR
set -eu
frozen=$1 source=$2 library=$3 work=$4
missed=0

breaks() { # breaks NAME MODE FILE SED_EXPRESSION
  rm -rf "$work"
  mkdir -p "$work"
  cp -r "$frozen" "$work/release"
  sed -i -E "$4" "$work/release/$3"
  if cmp -s "$frozen/$3" "$work/release/$3"; then
    echo "$1 changes nothing in $3"
    missed=$((missed + 1))
  elif "$source/abi/checks/frozen.sh" "$2" "$work/release" "$source" "$library" \
    "$work/run" >"$work/log" 2>&1; then
    echo "$2 accepts: $1"
    missed=$((missed + 1))
  else
    echo "$2 objects: $1"
  fi
}

breaks 'a result changed' client client/client_operators.c \
  '0,/(HOLDS\(y, BOUND\([^)]*\),) 1\.0,/s//\1 1.5,/'
breaks 'an operator not called' coverage client/client_operators.c \
  '/^  swiglu_([0-9]|refusals)\(/d; /static void swiglu_([0-9]|refusals)/,/^}/d'
breaks 'a member moved' locks layout_lock.c '0,/(offsetof\(.* == )8\)/s//\116)/'
breaks 'a result of the C++ layer changed' unit client/unit.cpp 's/\.epsilon\(0\)/.epsilon(1000)/'
[ $missed -eq 0 ]
