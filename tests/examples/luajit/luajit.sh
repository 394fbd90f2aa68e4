#!/usr/bin/env bash
# What velo_describe gives suffices to bind a language. Exit code 77, a skip, where luajit is not
# installed.
#
#   luajit.sh calls  SOURCE_DIR LIBRARY LAYOUT_LOCK WORK_DIR   the LuaJIT binding made from it
#                    computes, fails and is called back
#   luajit.sh header ..   every C declaration of the public headers follows: a header made from the
#                         JSON stands in for all of them.
#                         The layout lock compiles against it; each velo name of the real headers is
#                         in it; and each _INIT gives the same bytes in both
set -eu
mode=$1 source=$2 library=$3 lock=$4 work=$5
command -v luajit >/dev/null || {
  echo "not tested: luajit is not installed (Debian: apt-get install luajit)"
  exit 77
}
if [ "$mode" = calls ]; then
  [ "$(wc -l <"$source/examples/luajit/velo.lua")" -le 120 ] || {
    echo "FAILED: the binding has grown beyond 120 lines"
    exit 1
  }
  exec luajit "$source/tests/examples/luajit/binding_test.lua" "$source/examples/luajit" "$library"
fi
rm -rf "$work"
mkdir -p "$work/derived/velo"
luajit "$source/tests/examples/luajit/header.lua" "$source/examples/luajit" \
  "$library" >"$work/derived/velo/velo.h"
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -DVELO_LOCK_CURRENT -I"$work/derived" -fsyntax-only \
  "$lock"

# Names: what the preprocessor leaves of the headers, and what they define. Private: guards, and
# what export.h is for.
names() { # names INCLUDE_DIR
  {
    cc -std=c99 -E -P -I"$1" "$work/all.c"
    cc -std=c99 -E -dM -I"$1" "$work/all.c" | sed -E 's/^#define (\w+).*/\1/' |
      grep -vE '_H$|^VELO_(API|BEGIN_C|END_C|TARGET_ABI)$'
  } | grep -oE '\b(velo|VELO)_\w+' | sort -u
}
echo '#include "velo/velo.h"' >"$work/all.c"
comm -23 <(names "$source/capi/include") <(names "$work/derived") >"$work/missing"
[ ! -s "$work/missing" ] || {
  echo "FAILED: the JSON lacks: $(tr '\n' ' ' <"$work/missing")"; exit 1
}

# Values: the bytes of every _INIT that the headers define.
inits=$(names "$source/capi/include" | grep -E '_INIT$')
{
  echo '#include <stdio.h>'
  echo '#include "velo/velo.h"'
  echo 'int main(void) {'
  for init in $inits; do
    type=$(tr '[:upper:]' '[:lower:]' <<<"${init%_INIT}")
    echo "  {"
    echo "    static const $type value = $init;"
    echo "    printf(\"$init \");"
    echo "    for (unsigned i = 0; i < sizeof value; ++i)"
    echo "      printf(\"%02x\", ((const unsigned char*)&value)[i]);"
    echo "    printf(\"\\n\");"
    echo "  }"
  done
  echo '  return 0;'
  echo '}'
} >"$work/inits.c"
for headers in "$source/capi/include" "$work/derived"; do
  cc -std=c99 -I"$headers" "$work/inits.c" -o "$work/inits"
  "$work/inits" >"$work/inits.$(basename "$headers")"
done
diff "$work/inits.include" "$work/inits.derived" || {
  echo "FAILED: an _INIT follows otherwise from the JSON"
  exit 1
}
echo "$(names "$source/capi/include" | wc -l) names, $(wc -w <<<"$inits") initializers"
