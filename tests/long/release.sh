#!/usr/bin/env bash
# A release rehearsed in a copy of the tree: the commands with which CONTRIBUTING.md freezes one,
# read from there, among them all deliberate breaks against the committed result. Then a change of
# the frozen release, which the gates must refuse, and the commands that begin the next release.
# With a warm compiler cache ten minutes on two busy processors, and the deliberate breaks; else
# also what the library takes to compile.
#
#   release.sh SOURCE_DIR WORK_DIR
set -eu
source=$1 tree=$2/tree
rm -rf "$2"
mkdir -p "$tree"
(cd "$source" && git ls-files -co --exclude-standard -z |
  tar --null --ignore-failed-read -cf - -T -) | tar -xf - -C "$tree"
cd "$tree"
release=$(python3 -c 'import json; print(json.load(open("abi/spec/ops.json"))["release"])')
[ ! -e "abi/$release" ] || {
  echo "not tested: $release has shipped, there is nothing to rehearse before the next"
  exit 77
}
git init -q
git config user.name rehearsal
git config user.email rehearsal@localhost
git config core.hooksPath /dev/null
git add -A
git commit -qm "The tree"
cmake --preset release >configured.log || { cat configured.log; exit 1; }
rm configured.log
cmake --build build --target velo velo_adapters velo_gen | tail -1

# Runs the commands of CONTRIBUTING.md, from the one that begins so to the end of its paragraph, and
# expects nothing uncommitted.
next=${release%.*}.$((${release#*.} + 1))
follow() {
  local steps step
  steps=$(awk -v first="$1" '{line = $0; sub(/^ +/, "", line)} index(line, first) == 1 {there = 1} there && NF == 0 {exit} there {print line}' \
    CONTRIBUTING.md)
  [ "$(echo "$steps" | wc -l)" -ge 6 ] || {
    echo "CONTRIBUTING.md has no steps that begin with $1"
    exit 1
  }
  while read -r step; do
    # The document speaks of 1.0, and of 1.1 as the next.
    step=$(echo "$step" | sed "s/1\\.1/NEXT/g; s/1\\\\\\.0/${release/./\\\\\\.}/g; s/1\\.0/$release/g; s/NEXT/$next/g")
    echo "== $step"
    bash -e -o pipefail -c "$step" </dev/null || { echo "FAILED: $step"; exit 1; }
  done <<<"$steps"
  [ -z "$(git status --porcelain)" ] || {
    echo "the steps leave changes:"
    git status --short
    exit 1
  }
}

follow 'abi/freeze.sh '
! cmake --build build --target freeze >/dev/null 2>&1 || {
  echo "a release that has shipped can be frozen again"
  exit 1
}

# Refused from now on: the gates see the committed folder, and leave it alone.
sed -i '/VELO_ERR_FULL = /d' capi/include/velo/status.h
if ctest --test-dir build -R "^abi\\.frozen\\.locks\\.$release" >/dev/null; then
  echo "an error code may be dropped"
  exit 1
fi
git checkout -q capi
[ -z "$(git status --porcelain)" ] || { echo "the gates wrote:"; git status --short; exit 1; }

follow "sed -i '/^project(velo VERSION /"
cmake --build build --target freeze >/dev/null || {
  echo "$next cannot be frozen as it would ship"
  exit 1
}
echo "$release can be released, and $next begun"
