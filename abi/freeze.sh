#!/usr/bin/env bash
# Freezes a release: copies of the public headers, the spec, the version scripts, the layout lock
# and the empty library, the client, plugin and C++ unit that later libraries are run with, the
# baseline of types and functions of the library that ships, and a manifest with the checksum of
# each of these files.
#
#   abi/freeze.sh FOLDER BUILD               the release that ships, abi/1.0, from a clean tree and
#                                            its `release` build
#   abi/freeze.sh --candidate FOLDER BUILD   the release as it would ship today; the target `freeze`
#                                            does this for the gates
#
# FOLDER is named after the release and must not exist: a release is frozen once. Everything is read
# from this tree and from BUILD, so that library, generator and sources belong together. The folder
# is made under another name and moved into place when it is whole.
set -eu
candidate=no
[ "$1" != --candidate ] || { candidate=yes; shift; }
folder=$(realpath -m "$1") build=$(realpath -m "$2")
cd "$(dirname "$0")/.."

refuse() {
  echo "freeze.sh: $*" >&2
  exit 1
}

for tool in git cmake python3 readelf nm abidw gzip sha256sum; do
  command -v $tool >/dev/null || refuse "$tool is missing (the README lists the packages)"
done
[ ! -e "$folder" ] || refuse "$folder exists: a release is frozen once"

release=$(python3 -c 'import json; print(json.load(open("abi/spec/ops.json"))["release"])')
[ "$(basename "$folder")" = "$release" ] ||
  refuse "the spec states release $release, not $(basename "$folder")"
if [ $candidate = no ]; then
  [ "$(dirname "$folder")" = "$(realpath abi)" ] ||
    refuse "a release that ships is frozen in $(realpath abi)/$release, not in $folder"
  unclean=$(git status --porcelain) || refuse "the tree is not under version control"
  [ -z "$unclean" ] || refuse "the tree is not clean: $(echo "$unclean" | head -1)"
fi

cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
[ -f "$build/CMakeCache.txt" ] || refuse "$build is no build folder"
[ "$(realpath -m "$(cached CMAKE_HOME_DIRECTORY)")" = "$(realpath .)" ] ||
  refuse "$build is a build of $(cached CMAKE_HOME_DIRECTORY), not of $(realpath .)"
[ "$(cached CMAKE_BUILD_TYPE)" = RelWithDebInfo ] && [ -z "$(cached VELO_SANITIZE)" ] ||
  refuse "$build is no build of the preset release: RelWithDebInfo without sanitizers"
# The target `freeze` depends on both; ninja inside of ninja would corrupt its log.
[ $candidate = yes ] || cmake --build "$build" --target velo velo_gen

library=$build/capi/libvelo.so.1 generator=$build/abi/velo_gen
[ -f "$library" ] && [ -x "$generator" ] ||
  refuse "$build has no libvelo.so.1 or no velo_gen: build them first"
readelf -SW "$library" | grep -q '\.debug_info' || refuse "$library has no debug information"
for fact in soname exports; do
  output=$(python3 abi/checks/elf_facts.py $fact "$library" . "$build") ||
    refuse "$library is not the library of this tree: $(echo "$output" | head -1)"
done
output=$("$generator" --spec abi/spec --root . --check 2>&1) ||
  refuse "committed files do not follow from abi/spec: $(echo "$output" | head -1)"

mkdir -p "$(dirname "$folder")"
staged=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$staged"' EXIT
chmod 755 "$staged"
mkdir -p "$staged/include/velo"
cp -r capi/include/velo/. cpp/include/velo/. capi/adapters/include/velo/. "$staged/include/velo/"
cp -r abi/spec "$staged/spec"
cp -r abi/client "$staged/client"
"$generator" --spec abi/spec --gates "$staged/gates"
mv "$staged/gates/client_operators.c" "$staged/client/"
mv "$staged/gates/layout_lock.c" "$staged/gates/stub.c" "$staged/"
rm -r "$staged/gates"
cp abi/generated/velo.map capi/adapters/generated/adapters.map "$staged/"
abi/checks/abigail_write.sh "$library" capi/include "$staged/velo.abi"
gzip -9n "$staged/velo.abi"
(cd "$staged" && find . -type f ! -name MANIFEST | LC_ALL=C sort | xargs sha256sum >MANIFEST)
mv -T "$staged" "$folder"
echo "frozen: $(wc -l <"$folder/MANIFEST") files in $folder"
