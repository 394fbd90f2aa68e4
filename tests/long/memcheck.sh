#!/usr/bin/env bash
# valgrind's memcheck over the tests of the operators, and over the frozen client, which calls every operator once. valgrind shows
# the processor as one with AVX2 and nothing newer, so this is the AVX2 path; the tests force every kernel that path has. Three sweeps
# of attention over thousands of shapes are left to the sanitizers: here they would take an hour. The test of page protections would
# see valgrind's own pages.
#
#   memcheck.sh SOURCE_DIR OPS_TEST LIBRARY WORK_DIR
set -eu
source=$1 tests=$2 library=$3 work=$4
check=(valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite)

"$source/abi/checks/frozen.sh" client "$source" "$library" "$work" # builds it, and runs it once without valgrind
LD_LIBRARY_PATH=$work/client/new "${check[@]}" "$work/client/client" "$work/client/plugin_1_0.so"
"${check[@]}" "$tests" '~"generated code is never writable*"~"fusion_attention serves any*"~"fusion_attention cuts*"~"fusion_attention_backward agrees*"'
