#!/usr/bin/env bash
# Freezes the open release again: copies of the public headers, the spec, the version script, the layout lock and the stub into
# abi/1.0, and the baseline of types and functions into abi/baseline. The frozen programs (client, plugin, C++ unit) stay as they
# are. Run it in the last commit of a change that adds to the open release; never once the release has shipped.
#
#   abi/refreeze.sh [BUILD_DIR]     default build; holds libvelo.so built with debug information
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
library=$(find "$build" -name 'libvelo.so.1' | head -1)
release=1.0
frozen=abi/$release

[ -n "$library" ] || { echo "no libvelo.so.1 below $build: build it first" >&2; exit 1; }
readelf -SW "$library" | grep -q '\.debug_info' || { echo "$library has no debug information" >&2; exit 1; }
python3 abi/checks/spec_policy.py "$frozen/spec" abi/spec ||
  { [ "${VELO_REFREEZE_EDITS:-}" = yes ] || {
    echo "entries of the frozen spec were edited: set VELO_REFREEZE_EDITS=yes if the release has never left this tree" >&2
    exit 1
  }; }

rm -rf "$frozen/include" "$frozen/spec"
mkdir -p "$frozen/include/velo" abi/baseline
cp -r capi/include/velo/. cpp/include/velo/. "$frozen/include/velo/"
cp -r abi/spec "$frozen/spec"
cp abi/generated/velo.map abi/generated/layout_lock.c abi/generated/stub.c "$frozen/"
abi/checks/abigail_write.sh "$library" capi/include abi/baseline/velo-$release.abi
gzip -9nf abi/baseline/velo-$release.abi
echo "frozen: $(find "$frozen" -type f | wc -l) files in $frozen, abi/baseline/velo-$release.abi.gz of $(stat -c %s abi/baseline/velo-$release.abi.gz) bytes"
