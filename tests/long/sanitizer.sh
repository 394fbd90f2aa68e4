#!/usr/bin/env bash
# Builds and tests the tree with a sanitizer, in a build folder of its own beside the sources: the
# workflow preset of that name, and for asan the calls and descriptions at random that it leaves out
# as long.
#
#   sanitizer.sh asan|tsan SOURCE_DIR
set -eu
cd "$2"
cmake --workflow --preset "$1"
[ "$1" != asan ] || ctest --test-dir build-asan --output-on-failure \
  -R '^long\.(random_calls|descriptions)$'
