#!/usr/bin/env bash
# Compiles every public header alone with one compiler, and uses its _INIT macros: a header that
# needs another included first, a non-standard construct or a warning fails.
#
#   headers_alone.sh c   COMPILER SOURCE_DIR   C headers as C99 with -pedantic-errors, and as C++17
#   headers_alone.sh cpp COMPILER SOURCE_DIR   C++ headers as C++17 and C++20, with and without
#                                              exceptions and RTTI, and loaded
#                                              (VELO_DYNAMIC) instead of linked
# The C++ compiler of a pair is named; the C one follows from it (g++ -> gcc).
set -u
language=$1 cxx=$2 root=$3
case $cxx in
  *clang++*) cc=${cxx/clang++/clang} ;;
  *) cc=${cxx/g++/gcc} ;;
esac
include=(-I"$root/cpp/include" -I"$root/capi/include")
warnings=(-pedantic-errors -Wall -Wextra -Wconversion -Wshadow -Werror)
failures=0
count=0

program() { # program <header>: includes it and initializes every struct that it has a macro for
  printf '#include "%s"\ntypedef int alone;\n' "$1"
  sed -n 's/^#define \(VELO_[A-Z0-9_]*\)_INIT.*/\1/p' "$root/capi/include/$1" 2>/dev/null |
    while read -r name; do
    echo "extern ${name,,} made_${name,,};"
    echo "${name,,} made_${name,,} = ${name}_INIT;"
  done
}

compile() { # compile <header> <compiler> <flags..>
  local header=$1
  shift
  count=$((count + 1))
  if ! program "$header" | "$@" "${warnings[@]}" "${include[@]}" -fsyntax-only -; then
    echo "FAILED: $header with $*"
    failures=$((failures + 1))
  fi
}

if [ "$language" = c ]; then
  for path in "$root"/capi/include/velo/*.h; do
    header=velo/$(basename "$path")
    compile "$header" "$cc" -std=c99 -x c
    compile "$header" "$cxx" -std=c++17 -x c++ -Wold-style-cast
  done
else
  for path in "$root"/cpp/include/velo/*.hpp "$root"/cpp/include/velo/detail/*.hpp; do
    header=${path#"$root/cpp/include/"}
    for standard in c++17 c++20; do
      compile "$header" "$cxx" -std=$standard -x c++ -Wold-style-cast
      compile "$header" "$cxx" -std=$standard -x c++ -fno-exceptions -fno-rtti
    done
    compile "$header" "$cxx" -std=c++17 -x c++ -DVELO_DYNAMIC
    compile "$header" "$cxx" -std=c++17 -x c++ -DVELO_DYNAMIC -fno-exceptions -fno-rtti
  done
fi
echo "$count compilations, $failures failed"
[ "$count" -gt 0 ] && [ "$failures" -eq 0 ]
