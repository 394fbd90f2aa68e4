#!/usr/bin/env bash
# Compiles and links everything, tests included, as another build type or with another compiler: what gcc warns of depends on how much
# it optimizes, and warnings are errors here. Then the tests that take no time.
#
#   build_type.sh Release|MinSizeRel|Debug|clang SOURCE_DIR WORK_DIR
set -eu
build=$1 source=$2 work=$3
options=(-DCMAKE_BUILD_TYPE="$build")
[ "$build" != clang ] || options=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)
cmake -S "$source" -B "$work" -G Ninja "${options[@]}"
cmake --build "$work"
ctest --test-dir "$work" -L unit -LE 'ops|hosts' --output-on-failure --no-tests=error -j "$(nproc)"
