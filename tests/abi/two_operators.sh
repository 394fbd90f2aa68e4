#!/usr/bin/env bash
# usage: two_operators.sh VELO_GEN SOURCE_FOLDER
#
# Adds two operators to a copy of the spec, in the midst of what is there, and compares all
# generated files: lines are added, and no line that was there changes or goes. Entries are named,
# not numbered, so that two changes that each bring an operator can meet.
set -eu
gen=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source/abi/spec" "$work/old"
cp -r "$source/abi/spec" "$work/new"

python3 - "$work/new" <<'PYTHON'
import json, sys

def add(family, index, name):
    path = f"{sys.argv[1]}/ops/{family}.json"
    with open(path) as file:
        spec = json.load(file)
    spec["ops"].insert(index, {
        "name": name, "aliases": ["npu_" + name], "since": "1.0", "thread": "per-stream",
        "doc": ["y = x."], "source": "definition",
        "error_bound": {"float32": {}, "text": "exact"}, "bytes": "one read and one write of x",
        "fields": [{"name": "x", "kind": "tensor", "dir": "in", "dtypes": ["f32"],
                    "doc": "any shape"},
                   {"name": "y", "kind": "tensor", "dir": "out", "alias": ["x"],
                    "doc": "shape of x"}],
        "examples": [{"in": {"x": [2]}, "out": {"y": [2]}}]})
    with open(path, "w") as file:
        json.dump(spec, file, indent=2)

add("norm", 0, "throwaway_first")
add("rope", 1, "throwaway_second")
PYTHON
for spec in old new; do
  "$gen" --spec "$work/$spec" --root "$work/$spec.out" >/dev/null
  "$gen" --spec "$work/$spec" --gates "$work/$spec.out/gates"
done

failures=0 files=0
while read -r file; do
  files=$((files + 1))
  [ -f "$work/new.out/$file" ] || { echo "$file is gone"; failures=$((failures + 1)); continue; }
  if diff "$work/old.out/$file" "$work/new.out/$file" | grep '^<' >"$work/lost"; then
    echo "$file: $(wc -l <"$work/lost") lines that name neither operator change, first: $(head -1 "$work/lost")"
    failures=$((failures + 1))
  fi
  grep -q throwaway_first "$work/new.out/$file" && grep -q throwaway_second "$work/new.out/$file" &&
    named=yes
done < <(cd "$work/old.out" && find . -type f)
[ -n "${named:-}" ] || {
  echo "no generated file names the two operators"
  failures=$((failures + 1))
}
echo "$files generated files compared"
exit $((failures > 0))
