#!/usr/bin/env bash
# The memory examples in C and C++ say the same, what they say is true, and both draw a picture.
# Arguments: memory_c, memory_cpp.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; cat "$work"/*/printed; exit 1; }
for program in "$@"; do
  folder=$work/$(basename "$program")
  mkdir "$folder"
  "$program" "$folder" | sed "s|$folder|DIR|" > "$folder/printed"
  [[ "$(tail -c 7 "$folder/memory.svg")" == "</svg>" ]] || fail "no picture of $program"
  [[ "$(ls "$folder" | sort | tr '\n' ' ')" == "memory.svg printed " ]] ||
    fail "$program left files"
done
# But for the peak, which depends on how soon the disk takes what leaves.
diff <(sed 's/peak.*reserved/peak/' "$work"/memory_c/printed) <(sed 's/peak.*reserved/peak/' \
  "$work"/memory_cpp/printed) ||
  fail "C and C++ differ"

# Five buffers of 1 MiB, alive together; four of them in the file; the context and the swap in the
# pool.
grep -qx 'plan: 5242880 bytes where 5242880 is the least, 5 of 5 requests at their addresses' \
  "$work/memory_c/printed" || fail "another plan"
grep -q '^swap: 4194304 bytes out and 4194304 back by ' "$work/memory_c/printed" ||
  fail "another swap"
awk '/^pool:/ { exit !($NF > 0) }' "$work/memory_c/printed" ||
  fail "the context has nothing of the pool"

# The first number of the input and of each of the four layers: the first divides by its root mean
# square, the others by one.
awk '/^swap:/ {
  for (i = 0; i < 1024; ++i) squares += (i % 251 - 125) ^ 2
  wrong = $NF - (-125 - 4 * 125 / sqrt(squares / 1024))
  exit wrong > 0.01 || wrong < -0.01
}' "$work/memory_c/printed" || fail "another sum"
