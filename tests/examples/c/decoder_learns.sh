#!/usr/bin/env bash
# The decoder trained in C++ runs, its loss falls by half and more, and it is the same in every run.
# decoder_learns.sh PROGRAM TEXT
set -eu
one=$("$1" "$2" 100)
two=$("$1" "$2" 100)
[ "$one" = "$two" ] || { echo "two runs differ: $one / $two"; exit 1; }
grep '^step' <<<"$one" | awk '
  NR == 1 { first = $4 } { last = $4 }
  END {
    if (NR != 6 || first < 5 || last > first / 2) {
      print "from " first " to " last " in " NR " rows"
      exit 1
    }
  }'
