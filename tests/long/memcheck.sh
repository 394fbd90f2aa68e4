#!/usr/bin/env bash
# valgrind's memcheck over the tests of the operators, and over the frozen client, which calls every
# operator once. valgrind shows the processor as one with AVX2 and nothing newer, so this is the
# AVX2 path; the tests force every kernel that path has. Left to the sanitizers, for the time they
# take here: three sweeps of attention over thousands of shapes, and large calls on several threads,
# which valgrind runs one at a time. The test of page protections would see valgrind's own pages.
# The tests run file by file, as many at once as there are processors; what a file printed is shown
# if it failed.
#
#   memcheck.sh SOURCE_DIR FROZEN_DIR OPS_TEST LIBRARY WORK_DIR
set -eu
source=$1 frozen=$2 tests=$3 library=$4 work=$5
check=(valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite \
  --errors-for-leak-kinds=definite)

# builds it, and runs it once without valgrind
"$source/abi/checks/frozen.sh" client "$frozen" "$source" "$library" "$work"
LD_LIBRARY_PATH=$work/client/new "${check[@]}" "$work/client/client" "$work/client/plugin.so"

left_out='~"generated code is never writable*"~"fusion_attention serves any*"~"fusion_attention cuts*"'
left_out+='~"fusion_attention_backward agrees*"~"fusion_attention gives the same bits*"~"the bits of a product*"'
left_out+='~"every kernel of every operator gives the same bits*"'
one_file() { # one_file <tag> <command..>: the tests of one file
  local tag=$1 log=$work/memcheck-$1.log status=0
  shift
  "$@" --filenames-as-tags --warn NoTests "[#$tag]$left_out" >"$log" 2>&1 || status=$?
  echo "$tag: exit code $status after $SECONDS s"
  [ "$status" = 0 ] || { cat "$log"; return 1; }
}
export -f one_file
export work left_out
find "$source/tests/ops" -name '*_test.cpp' -printf '%f\n' | sed 's/\.cpp$//' |
  grep -vE 'steady_state|null_sizes' | sort |
  xargs -P "$(nproc)" -I{} bash -c 'one_file "$@"' - {} "${check[@]}" "$tests"
