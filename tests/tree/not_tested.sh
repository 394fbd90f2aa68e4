#!/usr/bin/env bash
# .ci/not_tested names what a skipped test and a test that passed left out, and nothing else:
# not_tested.sh PROGRAM.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build/Testing/Temporary"
cat >"$work/CTestTestfile.cmake" <<END
add_test(skipped sh -c "echo not tested: two hosts: no right; exit 77")
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
add_test(in_part sh -c "echo '  not tested: a full disk'; echo; echo '  not tested: a full disk'")
add_test(cases sh -c "echo 'OK (skipped=3)'")
add_test(whole sh -c "echo tested")
END
(cd "$work" && ctest >"$work/log")
grep -q 'skipped (Skipped)' "$work/log"
mv "$work/Testing/Temporary/LastTest.log" "$work/build/Testing/Temporary"
expected='not tested: skipped: two hosts: no right
not tested: in_part: a full disk
not tested: cases: (skipped=3) of its cases'
got=$("$1" "$work/build")
[ "$got" = "$expected" ] || { echo "expected: $expected"; echo "got: $got"; exit 1; }
