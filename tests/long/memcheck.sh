#!/usr/bin/env bash
# One pass of valgrind's memcheck over the operators' and the C entries' tests. valgrind knows no AVX-512, so the library is held to
# AVX2; suppressions name what is not velo's. Slow: about 30 times the native run.
#
#   memcheck.sh SOURCE_DIR TEST_PROGRAM..
set -eu
source=$1
shift
failed=0
for program in "$@"; do
  echo "== $program"
  VELO_ISA=avx2 VELO_KERNEL_JIT=off VELO_TEST_QUICK=1 valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
    --suppressions="$source/tests/long/valgrind.supp" "$program" || { echo "FAILED: $program exits $?"; failed=1; }
done
exit $failed
