#!/usr/bin/env bash
# Programs of a frozen release with the library of today. They see the frozen headers only and are
# linked to an empty library that has that day's names and nodes: exactly the situation of an old
# executable.
#
#   frozen.sh client   FROZEN_DIR SOURCE_DIR LIBRARY WORK_DIR   the C client and its plugin
#   frozen.sh adapters FROZEN_DIR SOURCE_DIR LIBRARY WORK_DIR   a C program of the adapters, which
#                                                               stand in capi/adapters or beside
#                                                               LIBRARY; they still export every
#                                                               name
#   frozen.sh unit     FROZEN_DIR SOURCE_DIR LIBRARY WORK_DIR   a C++ unit of then and a unit of now
#                      in one program
#   frozen.sh locks    FROZEN_DIR SOURCE_DIR LIBRARY WORK_DIR   every layout of then in the headers
#                      of now
#   frozen.sh coverage FROZEN_DIR SOURCE_DIR LIBRARY WORK_DIR   the client calls every function the
#                                                               release had
#   frozen.sh kept     FROZEN_DIR SOURCE_DIR LIBRARY WORK_DIR   the frozen files are those that were
#                      frozen
set -eu
mode=$1 frozen=$2 source=$3 library=$4 work=$5/$1
rm -rf "$work"
mkdir -p "$work/old" "$work/new"
[ -d "$frozen/include" ] || {
  echo "FAILED: nothing is frozen in $frozen: the target freeze does it"
  exit 1
}

stub() {
  cc -shared -fPIC -Wl,--version-script="$frozen/velo.map" -Wl,-soname,libvelo.so.1 \
    "$frozen/stub.c" -o "$work/old/libvelo.so.1"
  ln -s libvelo.so.1 "$work/old/libvelo.so"
}

adapters_stub() {
  sed -n 's/^ *\([a-z0-9_]*\);$/void \1(void) {}/p' "$frozen/adapters.map" |
    cc -shared -fPIC -w -fno-builtin -Wl,--version-script="$frozen/adapters.map" \
      -Wl,-soname,libvelo_adapters.so.1 -xc - \
      -o "$work/old/libvelo_adapters.so"
}

client_objects() {
  local part
  for part in "$frozen"/client/*.c; do
    part=$(basename "$part" .c)
    [ "$part" != adapters ] && [ "$part" != plugin ] || continue # programs of their own
    cc -std=c99 -O1 -Wall -Wextra -Werror -I"$frozen/include" -c "$frozen/client/$part.c" \
      -o "$work/object_$part.o"
  done
}

case $mode in
client)
  stub
  client_objects
  cc "$work"/object_*.o -L"$work/old" -lvelo -lm -o "$work/client"
  cc -std=c99 -shared -fPIC -fvisibility=hidden -I"$frozen/include" "$frozen/client/plugin.c" \
    -o "$work/plugin.so"
  ln -s "$library" "$work/new/libvelo.so.1"
  readelf -VW "$work/client" | grep -q 'Name: VELO_1.0' || {
    echo "FAILED: the client asks for no node"
    exit 1
  }
  # what waits for ever is broken, too
  LD_LIBRARY_PATH=$work/new timeout 120 "$work/client" "$work/plugin.so"
  ;;
adapters)
  today=$(dirname "$library")
  for place in "$today/adapters" "$today"; do
    [ ! -e "$place/libvelo_adapters.so.1" ] || { today=$place; break; }
  done
  stub
  adapters_stub
  names() { nm -D --defined-only --with-symbol-versions "$1" | awk '$3 ~ /@@/ {print $3}' | sort; }
  lost=$(comm -23 <(names "$work/old/libvelo_adapters.so" | grep -v ' A ') <(names \
    "$today/libvelo_adapters.so.1"))
  [ -z "$lost" ] || { echo "FAILED: the adapters no longer export $lost"; exit 1; }
  cc -std=c99 -O1 -Wall -Wextra -Werror -I"$frozen/include" "$frozen/client/adapters.c" \
    -L"$work/old" -lvelo_adapters -lvelo -lm \
    -o "$work/adapters"
  ln -s "$library" "$work/new/libvelo.so.1"
  ln -s "$today/libvelo_adapters.so.1" "$work/new/"
  LD_LIBRARY_PATH=$work/new "$work/adapters"
  ;;
unit)
  c++ -std=c++17 -O1 -I"$frozen/include" -c "$frozen/client/unit.cpp" -o "$work/unit_then.o"
  c++ -std=c++17 -O1 -Wall -Wextra -Werror -I"$source/cpp/include" -I"$source/capi/include" -c \
    "$source/abi/checks/unit_now.cpp" \
    -o "$work/unit_now.o"
  ln -s "$library" "$work/new/libvelo.so.1"
  c++ "$work/unit_then.o" "$work/unit_now.o" "$work/new/libvelo.so.1" -o "$work/units"
  LD_LIBRARY_PATH=$work/new "$work/units"
  ;;
locks)
  count=0
  for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for language in "-x c -std=c11" "-x c++ -std=c++17"; do
      # shellcheck disable=SC2086 # the language is two words
      $compiler $language -Werror -fsyntax-only -I"$source/capi/include" "$frozen/layout_lock.c"
      count=$((count + 1))
    done
  done
  echo "$count compilations of layout locks"
  # A function whose type changed does not compile beside its declaration of then.
  printf '#include "%s"\n#undef VELO_ADAPTERS_H\n#include "%s"\n' \
    "$source/capi/adapters/include/velo/adapters.h" \
    "$frozen/include/velo/adapters.h" |
      cc -std=c99 -Werror -fsyntax-only -I"$source/capi/include" -xc -
  [ $count -ge 2 ]
  ;;
kept)
  cd "$frozen"
  sha256sum --check --quiet --strict MANIFEST || {
    echo "FAILED: a frozen file was edited"
    exit 1
  }
  diff <(find . -type f ! -name MANIFEST | LC_ALL=C sort) <(sed 's/^[0-9a-f]*  //' MANIFEST) ||
    { echo "FAILED: a frozen file was added or removed"; exit 1; }
  ;;
coverage)
  client_objects
  called=$(nm -u "$work"/object_*.o | awk '$1 == "U" {print $2}' | grep '^velo_' | sort -u)
  released=$(sed -n 's/^ *\(velo_[a-z0-9_]*\);.*/\1/p' "$frozen/velo.map" | sort -u)
  [ -n "$released" ] && [ "$called" = "$released" ] && {
    echo "all $(echo "$released" | wc -l) functions are called"; exit 0
  }
  missing=$(comm -13 <(echo "$called") <(echo "$released") | tr '\n' ' ')
  echo "FAILED: the client (abi/client/*.c) does not call: $missing"
  exit 1
  ;;
esac
