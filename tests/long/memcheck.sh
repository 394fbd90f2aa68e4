#!/usr/bin/env bash
# valgrind's memcheck over the tests of the operators. valgrind shows the processor as one with AVX2 and nothing newer, so this is
# the AVX2 path; the tests force every kernel that path has. About 40 times the native run.
#
#   memcheck.sh TEST_PROGRAM..
set -eu
failed=0
for program in "$@"; do
  echo "== $program"
  valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "$program" || {
    echo "FAILED: $program exits $?"
    failed=1
  }
done
exit $failed
