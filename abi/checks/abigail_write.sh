#!/usr/bin/env bash
# Writes what abidw knows of a library's public surface, with places in this tree named from its
# root. One place, so that baseline and comparison are made alike: --no-show-locs must never be
# added, it hides every change of a public struct. Only what exported functions reach is read, which
# takes 3 s instead of 30; a struct is known if the file that defines such a function includes its
# header.
#
#   abigail_write.sh LIBRARY HEADERS_DIR OUT.abi
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
abidw --exported-interfaces-only --headers-dir "$2" --no-corpus-path --no-comp-dir-path \
  --drop-private-types --out-file "$3" "$1"
sed -i "s|path='$root/|path='|g" "$3"
