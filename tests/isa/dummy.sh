#!/usr/bin/env bash
# A new ISA takes a vector header, a line of the list and a line of detection, all under core/simd,
# and every operator has kernels for it. Shown with a dummy between avx2 and avx512 (AVX2's vectors
# under another name) in a copy of the tree: nothing outside core/simd differs, the operators list
# the kernel, and the tests of operators pass with it as the highest ISA. Exit code 77, skipped,
# where the processor has no AVX2.
#
#   dummy.sh SOURCE_DIR WORK_DIR
set -eu
source=$1 work=$2
tree=$work/tree build=$work/build
grep -qw avx2 /proc/cpuinfo || { echo "not tested: the dummy needs AVX2"; exit 77; }

rm -rf "$tree" # not the build folder: what an earlier run compiled is still good
mkdir -p "$tree"
cd "$source"
git ls-files -co --exclude-standard | while read -r file; do
  if [ -e "$file" ]; then printf '%s\n' "$file"; fi
done | tar -cf - -T - | tar -xf - -C "$tree"

sums() { (cd "$tree" && find . -type f -exec sha256sum {} + | sort -k 2); }
sums >"$work/before"

cd "$tree/core/simd"
cat >dummy.hpp <<'END'
// The vectors of AVX2 as a second ISA.
#pragma once

#include "core/simd/avx2.hpp"

namespace velo::simd {
namespace dummy = avx2;
}
END
sed -i 's/^velo_isa(avx512 /velo_isa(dummy FLAGS ${avx2})\n&/' isas.cmake
sed -i 's/^    {isa::avx512,$/    {isa::dummy, [](const machine\&) { return true; }},\n&/' \
  detect.cpp

echo "== what differs"
sums | diff "$work/before" - | sed -n 's,^[<>] [0-9a-f]*  \./,,p' | sort -u >"$work/differs"
cat "$work/differs"
printf 'core/simd/%s\n' detect.cpp dummy.hpp isas.cmake | diff - "$work/differs"

cmake -S "$tree" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
  -DVELO_BUILD_EXAMPLES=OFF >"$work/configure.log"
cmake --build "$build" --target velo ops_test -j "$(nproc)" >"$work/build.log" || {
  tail -n 40 "$work/build.log"
  exit 1
}

echo "== what the operators list"
python3 "$source/tests/isa/listed.py" "$(find "$build" -name libvelo.so.1)" avx2 dummy

echo "== the tests of operators, with the dummy as the highest ISA"
VELO_ISA=dummy "$build/tests/ops_test"
