#!/usr/bin/env bash
# usage: spec_growth.sh VELO_GEN SOURCE_FOLDER LAYOUT_LOCK C_COMPILER CXX_COMPILER
#
# Grows a copy of the spec to a synthetic 1.1 (a field at the end of rms_norm, an enumerator, a new
# operator) and checks that nothing of 1.0 moves: the 1.0 layout lock compiles against the grown
# headers at both targets, programs for 1.0 do not see the news, programs for 1.1 do, and the
# version script only gains a node.
set -eu
gen=$1 source=$2 old=$3 c=$4 cxx=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source/abi/spec" "$work/spec"
mkdir -p "$work/cpp"
cp -r "$source/capi/include" "$work/include"
cp -r "$source/cpp/include" "$work/cpp/include"

python3 - "$work/spec" <<'PYTHON'
import json, sys

def edit(name, change):
    path = f"{sys.argv[1]}/{name}.json"
    with open(path) as file:
        spec = json.load(file)
    change(spec)
    with open(path, "w") as file:
        json.dump(spec, file, indent=2)

def grow_norm(spec):
    spec["ops"][0]["fields"].append(
        {"name": "offset", "kind": "f64", "default": 0.5, "since": "1.1", "doc": "added to gamma"})
    spec["ops"].append(
        {"name": "second_norm", "since": "1.1", "thread": "per-stream", "doc": ["y = x."],
         "source": "definition",
         "error_bound": {"float32": {}, "text": "exact"}, "bytes": "one read and one write of x",
         "fields": [{"name": "x", "kind": "tensor", "dir": "in", "dtypes": ["f32"],
                     "doc": "any shape"},
                    {"name": "y", "kind": "tensor", "dir": "out", "doc": "shape of x"}],
         "examples": [{"in": {"x": [2]}, "out": {"y": [2]}}]})

def grow_loss(spec):
    spec["enums"][0]["values"].append(
        {"name": "product", "value": 3, "since": "1.1", "doc": "all multiplied"})

edit("ops/norm", grow_norm)
edit("ops/loss", grow_loss)
edit("slots", lambda spec: spec["functions"].append("velo_second_norm"))
edit("core", lambda spec: spec.update(release="1.1"))
edit("ops", lambda spec: spec.update(release="1.1"))
PYTHON
"$gen" --spec "$work/spec" --root "$work/out" >/dev/null
"$gen" --spec "$work/spec" --gates "$work/gates"
cp "$work"/out/capi/include/velo/* "$work/include/velo/"
cp "$work/out/cpp/include/velo/ops.hpp" "$work/cpp/include/velo/"

flags=(-Wall -Wextra -Wpedantic -Werror "-I$work/include" -fsyntax-only)
new=$work/gates/layout_lock.c
# at target 1.0 even the sizes are the old ones
"$c" -std=c11 "${flags[@]}" -DVELO_LOCK_CURRENT "$old"
"$c" -std=c11 "${flags[@]}" -DVELO_TARGET_ABI=101 "$old"   # at 1.1 nothing old has moved
"$c" -std=c11 "${flags[@]}" -DVELO_LOCK_CURRENT "$new"
"$cxx" -std=c++17 -x c++ "${flags[@]}" -DVELO_LOCK_CURRENT "$new"
if "$c" -std=c11 "${flags[@]}" -DVELO_LOCK_CURRENT -DVELO_TARGET_ABI=101 "$old" 2>/dev/null; then
  echo "the old lock did not notice the growth"
  exit 1
fi

cat >"$work/client.c" <<'C'
#include "velo/velo.h"
int main(void) {
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
#if VELO_TARGET_ABI >= 101
  velo_second_norm_args second = VELO_SECOND_NORM_ARGS_INIT;
  return args.offset == 0.5 ? (int)second.reserved : VELO_REDUCTION_PRODUCT;
#else
  return (int)args.reserved;
#endif
}
C
"$c" -std=c99 "${flags[@]}" "$work/client.c"
"$c" -std=c99 "${flags[@]}" -DVELO_TARGET_ABI=101 "$work/client.c"
cat >"$work/wrapper.cpp" <<'C'
#include "velo/velo.hpp"
#if VELO_TARGET_ABI >= 101
static_assert(static_cast<int>(velo::reduction::product) == 3);
double offset() { return velo::rms_norm_args().offset(2.0).epsilon(1e-5).velo_rms_norm_args::offset; }
#endif
C
"$cxx" -std=c++17 "${flags[@]}" "-I$work/cpp/include" "$work/wrapper.cpp"
"$cxx" -std=c++17 "${flags[@]}" "-I$work/cpp/include" -DVELO_TARGET_ABI=101 "$work/wrapper.cpp"
if "$c" -std=c99 "${flags[@]}" -xc - 2>/dev/null <<<'#include "velo/velo.h"
int main(void) { velo_rms_norm_args a = VELO_RMS_NORM_ARGS_INIT; return a.offset > 0; }'; then
  echo "a program for 1.0 sees a field of 1.1"
  exit 1
fi
if "$c" -std=c99 "${flags[@]}" -xc - <<<'#include "velo/velo.h"
int main(void) { return VELO_REDUCTION_PRODUCT; }' 2>/dev/null; then
  echo "a program for 1.0 sees an enumerator of 1.1"
  exit 1
fi

diff <(sed '/^}/,$d' "$source/abi/generated/velo.map") <(sed '/^}/,$d' \
  "$work/out/abi/generated/velo.map")
grep -q '^VELO_1.1 {' "$work/out/abi/generated/velo.map"
grep -q '^} VELO_1.0;' "$work/out/abi/generated/velo.map"
