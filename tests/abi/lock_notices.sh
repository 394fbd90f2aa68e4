#!/usr/bin/env bash
# usage: lock_notices.sh C_COMPILER SOURCE_FOLDER LAYOUT_LOCK
#
# Breaks a copy of the public headers in one place at a time and expects the layout lock not to
# compile; unbroken it must.
set -u
compiler=$1 source=$2 lock=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

compiles() {
  "$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror -DVELO_LOCK_CURRENT "-I$work/include" \
    -fsyntax-only \
    "$lock" 2>"$work/message"
}

# breaks NAME HEADER SED_EXPRESSION
breaks() {
  rm -rf "$work/include"
  cp -r "$source/capi/include" "$work/include"
  sed -i -E "$3" "$work/include/velo/$2"
  if cmp -s "$source/capi/include/velo/$2" "$work/include/velo/$2"; then
    echo "$1: the expression changed nothing"
    failures=$((failures + 1))
  elif compiles; then
    echo "$1: the lock did not notice"
    failures=$((failures + 1))
  fi
}

cp -r "$source/capi/include" "$work/include"
if ! compiles; then
  cat "$work/message"
  exit 1
fi
breaks enumerator-renumbered status.h 's/VELO_ERR_RANK = 5/VELO_ERR_RANK = 25/'
breaks field-narrowed context.h 's/uint64_t bytes_peak;/uint32_t bytes_peak;/'
breaks field-signedness context.h 's/uint64_t bytes_peak;/int64_t bytes_peak;/'
breaks fields-swapped types.h 's/uint8_t code;/uint8_t swap;/; s/uint8_t bits;/uint8_t code;/; s/uint8_t swap;/uint8_t bits;/'
breaks field-appended pack.h 's/^\} velo_pack_desc;/  int64_t more;\n} velo_pack_desc;/'
breaks array-shortened status.h 's/char got\[192\]/char got[191]/'
breaks parameter-type context.h 's/velo_context_stream\(velo_context context/velo_context_stream(velo_stream context/'
breaks parameter-added stream.h 's/velo_stream_query\(velo_stream stream/velo_stream_query(velo_stream stream, int32_t more/'
breaks result-type pack.h 's/VELO_API void velo_pack_destroy/VELO_API int velo_pack_destroy/'
breaks slots-swapped api.h 's/\(\*last_error\)\(velo_error_info\* info\)/(*swap)(velo_error_info* info)/'
breaks slot-retyped api.h 's/\(\*tensor_release\)\(velo_managed_tensor\*/(*tensor_release)(velo_tensor*/'
breaks op-field-retyped ops_norm.h 's/double epsilon;/float epsilon;/'
exit $((failures > 0))
