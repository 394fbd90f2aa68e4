#!/usr/bin/env bash
# Compiles and links everything, tests included, as another build type or with another compiler:
# what gcc warns of depends on how much it optimizes, and warnings are errors here; or without MPI,
# which is then reported as missing. Then the tests that take no time.
#
#   build_type.sh Release|MinSizeRel|Debug|clang|without_mpi SOURCE_DIR WORK_DIR
set -eu
build=$1 source=$2 work=$3
options=(-DCMAKE_BUILD_TYPE="$build")
[ "$build" != clang ] || options=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)
[ "$build" != without_mpi ] ||
  options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_DISABLE_FIND_PACKAGE_MPI=TRUE)
cmake -S "$source" -B "$work" -G Ninja -DVELO_WERROR=ON "${options[@]}"
cmake --build "$work"
if [ "$build" = without_mpi ]; then
  [ ! -e "$work/capi/libvelo_mpi.so" ] || { echo "a plugin for MPI without MPI"; exit 1; }
  "$work/tools/velo/velo" info --no-measure | tr -s '\n ' ' ' | # it folds its lines
    grep -F "mpi (not here: " | grep -F "none in $work/capi"
fi
ctest --test-dir "$work" -L unit -LE 'ops|hosts' --output-on-failure --no-tests=error -j "$(nproc)"
