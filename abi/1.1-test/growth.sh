#!/usr/bin/env bash
# The next release (1.1 after 1.0) tried before it is needed: the real library, grown by one of
# everything (grow.py), beside the one of today.
#
#   growth.sh build      SOURCE BUILD WORK LIBRARY GENERATOR   grows the tree, compiles what reads
#                        the tables, links the grown libvelo
#   growth.sh exports    ..   the grown library exports the grown spec, old names at the old node,
#                        new ones at the new
#   growth.sh old_client ..   the frozen client and plugin run unchanged with the grown library
#   growth.sh new_client ..   a client of the next release runs with the grown library
#   growth.sh by_name    ..   a linked client of the next release on today's library is refused by
#                        the loader, which names the version
#   growth.sh by_table   ..   an opening client of the next release on today's library is refused by
#                        velo_get_api, and by the field it sets
set -eu
mode=$1 source=$2 build=$3 work=$4 library=$5 generator=$6 frozen=$7
here=$source/abi/1.1-test
tree=$work/tree
stated=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["release"])' "$source/abi/spec/ops.json")
next=${stated%.*}.$((${stated#*.} + 1))

case $mode in
build)
  rm -rf "$work"
  mkdir -p "$work/objects" "$work/lib" "$work/stub"
  python3 "$here/grow.py" "$source" "$tree" "$generator"
  "$generator" --spec "$tree/abi/spec" --gates "$work/gates"
  python3 "$here/link.py" velo "$build" "$tree" "$work/objects" "$work/lib/libvelo.so.1" \
    "$here/growth.cpp"
  cc -shared -fPIC -Wl,--version-script="$tree/abi/generated/velo.map" -Wl,-soname,libvelo.so.1 \
    "$work/gates/stub.c" \
    -o "$work/stub/libvelo.so"
  flags=(-std=c99 -Wall -Wextra -Werror -DVELO_TARGET_ABI=$((100 * ${next%.*} + ${next#*.})) \
    -I"$tree/capi/include")
  cc "${flags[@]}" "$here/client_1_1.c" -L"$work/stub" -lvelo -o "$work/client_linked"
  cc "${flags[@]}" -DOPENED "$here/client_1_1.c" -ldl -o "$work/client_opened"
  ;;
exports)
  python3 "$source/abi/checks/elf_facts.py" exports "$work/lib/libvelo.so.1" "$tree" "$build"
  nm -D --with-symbol-versions "$work/lib/libvelo.so.1" | grep -q "velo_growth_double@@VELO_$next"
  ;;
old_client) "$source/abi/checks/frozen.sh" client "$frozen" "$source" "$work/lib/libvelo.so.1" \
  "$work" ;;
new_client) LD_LIBRARY_PATH=$work/lib "$work/client_linked" ;;
by_name)
  if LD_LIBRARY_PATH=$(dirname "$library") "$work/client_linked" 2>"$work/refusal"; then
    echo "FAILED: a program of $next starts with a library of today"
    exit 1
  fi
  cat "$work/refusal"
  grep -q "VELO_$next" "$work/refusal"
  ;;
by_table) "$work/client_opened" "$library" ;;
esac
