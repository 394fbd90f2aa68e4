#!/usr/bin/env bash
# Builds and tests the tree with a sanitizer, in a build folder of its own beside the sources: the workflow preset of that name.
#
#   sanitizer.sh asan|tsan SOURCE_DIR
set -eu
cd "$2"
cmake --workflow --preset "$1"
