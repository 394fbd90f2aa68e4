#!/usr/bin/env bash
# velo.hpp may not cost a program more than 22 000 preprocessed lines: what it includes is what
# every user compiles. The standard library has 8 900 of them, an operator about 50.
#
#   preprocess_budget.sh COMPILER SOURCE_DIR
set -eu
lines=$(printf '#include "velo/velo.hpp"\n' |
  "$1" -std=c++17 -x c++ -E -P -I"$2/cpp/include" -I"$2/capi/include" - | wc -l)
marked=$(printf '#include "velo/velo.hpp"\n' |
  "$1" -std=c++17 -x c++ -E -I"$2/cpp/include" -I"$2/capi/include" - | wc -l)
echo "velo.hpp: $marked lines with line markers, $lines without"
[ "$lines" -gt 500 ] && [ "$marked" -lt 22000 ]
