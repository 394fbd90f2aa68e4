#!/usr/bin/env bash
# The C++ layer is one to one: every exported function is reached by some wrapper, and velo.hpp
# includes every header with one.
#
#   covers_c.sh SOURCE_DIR
set -eu
exported=$(sed -n 's/^ *velo_\([a-z0-9_]*\);.*/\1/p' "$1/abi/generated/velo.map" | sort)
# velo_get_api is what velo::load calls through dlsym.
reached=$({ grep -rhoE 'VELO_FN\([a-z0-9_]+\)' "$1/cpp/include" |
  sed 's/VELO_FN(\(.*\))/\1/'; echo get_api; } | sort -u)
apart=$(cd "$1/cpp/include" && c++ -std=c++17 -I. -I"$1/capi/include" -MM velo/velo.hpp |
  tr -d '\\\n' | tr ' ' '\n' |
  grep -o 'velo/.*\.hpp$' | sort -u | comm -23 <(find velo -name '*.hpp' | sort) -)
[ -z "$apart" ] || { echo "velo.hpp does not include: $apart"; exit 1; }
missing=$(comm -23 <(echo "$exported") <(echo "$reached"))
[ -n "$exported" ] && [ -z "$missing" ] || { echo "no wrapper for: $missing"; exit 1; }
echo "$(echo "$exported" | wc -l) functions have a wrapper"
