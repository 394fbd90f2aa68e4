#!/usr/bin/env bash
# Writes what abidw knows of a library's public surface. One place, so that baseline and comparison are made alike:
# --no-show-locs must never be added, it hides every change of a public struct.
#
#   abigail_write.sh LIBRARY HEADERS_DIR OUT.abi
set -eu
abidw --headers-dir "$2" --no-corpus-path --no-comp-dir-path --drop-private-types --out-file "$3" "$1"
