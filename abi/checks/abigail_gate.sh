#!/usr/bin/env bash
# Compares a built library with the frozen baseline of its types and functions. Any exit code of
# abidiff but 0 fails: a changed parameter or a member inserted mid-struct gives "only" 4.
#
#   abigail_gate.sh LIBRARY BASELINE.abi.gz HEADERS_DIR SPEC_DIR SUPPRESSIONS WORK_DIR
#
# abidiff is content with a library that has no debug information and with a headers folder that is
# not there, so both are checked first, and the number of functions it sees is held against the
# spec.
set -eu
library=$1 baseline=$2 headers=$3 spec=$4 suppressions=$5 work=$6
here=$(dirname "$0")

fail() {
  echo "FAILED: $*"
  exit 1
}

mkdir -p "$work"
[ -f "$baseline" ] || fail "no baseline at $baseline: abi/freeze.sh writes it"
[ -f "$headers/velo/velo.h" ] ||
  fail "no headers at $headers: private types would be compared, or public ones ignored"
readelf -SW "$library" | grep -q '\.debug_info' ||
  fail "$library has no debug information: abidiff would accept anything"

"$here/abigail_write.sh" "$library" "$headers" "$work/new.abi"
seen=$(grep -c "function-decl.*elf-symbol-id='velo_" "$work/new.abi" || true)
written=$(python3 -c "import sys; sys.path.insert(0, sys.argv[1]); import spec_reader; print(len(spec_reader.load(sys.argv[2]).functions))" \
  "$here" "$spec")
[ "$seen" -eq "$written" ] ||
  fail "the debug information describes $seen functions, the spec has $written"
unknown=$(sed -n "/is-declaration-only='yes'/s/.* name='\(velo_[^']*\)'.*/\1/p" "$work/new.abi" | grep -v '_s$' | sort -u | tr '\n' ' ')
[ -z "$unknown" ] ||
  fail "no definition of $unknown: include its header where the functions that take it are defined"

gunzip -c "$baseline" >"$work/base.abi"
code=0
abidiff --no-added-syms --headers-dir1 "$headers" --headers-dir2 "$headers" \
  --suppressions "$suppressions" \
  "$work/base.abi" "$work/new.abi" || code=$?
[ $code -eq 0 ] || fail "abidiff exits $code"
echo "$seen functions, same as the baseline"
