#!/usr/bin/env bash
# The training in C runs, says a loss that falls at every print, and ends below 0.05.
set -eu
"$1" | awk '
  NR > 1 && $4 >= before { print "the loss rose at: " $0; wrong = 1 }
  { before = $4; last = $4; lines = NR }
  END {
    if (lines < 5 || last > 0.05) { print "ended at " last " after " lines " lines"; wrong = 1 }
    exit wrong
  }'
