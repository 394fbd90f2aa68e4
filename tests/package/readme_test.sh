#!/usr/bin/env bash
# The README's two commands in one checkout, in either order, without the lines that install
# packages: the first builds the main job and leaves a tree that installs, and after it the second
# still configures the tests; after the second the first still builds.
#
#   readme_test.sh SOURCE_DIR WORK_DIR   builds the tree once, without tests; the second command's
#                                        build and run are CI's own
set -euo pipefail
source=$1 work=$2
rm -rf "$work"
mkdir -p "$work/checkout"
(cd "$source" && git ls-files -co --exclude-standard -z |
  tar --null -T - --ignore-failed-read -cf -) | tar -xf - -C "$work/checkout"
cd "$work/checkout"

fail() {
  echo "FAILED: $*"
  exit 1
}

# command_of <n>: the n-th shell block of the README, less what needs a package manager
command_of() {
  awk -v wanted="$1" '/^```sh$/ {n++; inside = 1; next} /^```$/ {inside = 0} inside && n == wanted' README.md |
    sed -e ':join' -e '/\\$/ {N; s/\\\n//; b join' -e '}' | grep -vE 'apt-get|command -v sudo'
}

tests_configured() { ctest --test-dir build -N | sed -n 's/^Total Tests: //p'; }

first=$(command_of 1) second=$(command_of 2)
grep -q 'examples/pretrain/pretrain --ranks 2$' <<<"$first" ||
  fail "the first command does not end with the main job: $first"
[ "$second" = "cmake --workflow --preset release" ] ||
  fail "the second command is not what this test expects: $second"

bash -e -c "${first%build/examples/pretrain/pretrain*}" >"$work/first.log" 2>&1 ||
  fail "$(tail -5 "$work/first.log")"
build/examples/pretrain/pretrain --help >/dev/null || fail "the main job does not start"
cmake --install build --prefix "$work/prefix" >"$work/install.log" ||
  fail "no installation after the first command"
[ -f "$work/prefix/share/doc/velo/LICENSE" ] || fail "the installation lacks its notices"
[ "$(tests_configured)" = 0 ] || fail "the first command configures tests, which need more packages"
# what the workflow does first
cmake --preset release >"$work/second.log" || fail "$(cat "$work/second.log")"
[ "$(tests_configured)" -gt 100 ] ||
  fail "after the first command the second finds $(tests_configured) tests"
bash -e -c "${first%build/examples/pretrain/pretrain*}" >"$work/again.log" 2>&1 ||
  fail "$(tail -5 "$work/again.log")"
echo "both orders hold; $(cmake --preset release >/dev/null && tests_configured) tests configured"
