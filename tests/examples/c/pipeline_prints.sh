#!/usr/bin/env bash
# The pipeline in C has the gradients of one rank, is simulated to take half of its time, or little
# more, and leaves pictures and a trace with every action of the schedule: 8 micro-batches, 4
# stages, F, I and W. Argument: pipeline_c.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; cat "$work/printed"; exit 1; }
mkdir "$work/made"
"$1" "$work/made" > "$work/printed" || fail "it ended with $?"

grep -qx 'the gradients are those of one rank' "$work/printed" || fail "other gradients"
awk '/^one rank/ { exit !($3 > 0 && $8 >= $3 / 2 - 0.2 && $8 <= $3 * 0.75 && $11 > 0) }' \
  "$work/printed" || fail "no times"
[[ "$(ls "$work/made" | tr '\n' ' ')" == "measured.json measured.svg simulated.svg " ]] || fail \
  "other files"
for picture in simulated measured; do
  [[ "$(tail -c 7 "$work/made/$picture.svg")" == "</svg>" ]] || fail "$picture.svg is cut off"
  [[ "$(grep -c '<title>[0-3][FIW][0-7]: ' "$work/made/$picture.svg")" == 96 ]] || fail \
    "$picture.svg lacks actions"
done
grep -q ' ms, bubble' "$work/made/measured.svg" || fail "measured.svg was not measured"
[[ "$(grep -c '"name": *"[0-3][FIW][0-7]", *"ph": *"X"' "$work/made/measured.json")" == 96 ]] || \
  fail "measured.json lacks actions"
