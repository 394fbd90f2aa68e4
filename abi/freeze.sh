#!/usr/bin/env bash
# Freezes a release: copies of the public headers, the spec, the version script, the layout lock and the empty library, the client,
# plugin and C++ unit that later libraries are run with, and the baseline of types and functions of the library that ships.
#
#   abi/freeze.sh FOLDER LIBRARY GATE_FILES
#
# FOLDER must not exist: what has shipped is never frozen again. LIBRARY is built with debug information; GATE_FILES is where
# `velo_gen --gates` wrote. The target `freeze` does this in the build's folder; abi/README.md says what to do when one ships.
set -eu
folder=$(realpath -m "$1") library=$(realpath "$2") gates=$(realpath "$3")
cd "$(dirname "$0")/.."

[ ! -e "$folder" ] || { echo "$folder exists: a release is frozen once" >&2; exit 1; }
readelf -SW "$library" | grep -q '\.debug_info' || { echo "$library has no debug information" >&2; exit 1; }

mkdir -p "$folder/include/velo"
cp -r capi/include/velo/. cpp/include/velo/. capi/adapters/include/velo/. "$folder/include/velo/"
cp -r abi/spec "$folder/spec"
cp -r abi/client "$folder/client"
cp "$gates/client_operators.c" "$folder/client/"
cp abi/generated/velo.map capi/adapters/generated/adapters.map "$gates/layout_lock.c" "$gates/stub.c" "$folder/"
abi/checks/abigail_write.sh "$library" capi/include "$folder/velo.abi"
gzip -9n "$folder/velo.abi"
echo "frozen: $(find "$folder" -type f | wc -l) files in $folder"
