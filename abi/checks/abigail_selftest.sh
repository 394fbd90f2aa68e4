#!/usr/bin/env bash
# Proves that the type gates can fail: breaks the public surface on purpose, one way at a time, and
# expects abidiff's gate or the layout lock of the unbroken release to object. A control without a
# break, and one that only adds, must pass.
#
#   abigail_selftest.sh SOURCE_DIR GATE_FILES WORK_DIR
set -eu
source=$1 gate_files=$2 work=$3
checks=$source/abi/checks
rm -rf "$work"
mkdir -p "$work"

# tree <name>: a copy of headers, spec and map to break.
tree() {
  mkdir -p "$work/$1/abi"
  cp -r "$source/capi/include" "$work/$1/include"
  cp -r "$source/abi/spec" "$work/$1/abi/spec"
  cp "$source/abi/generated/velo.map" "$work/$1/velo.map"
}

# library <name> [flags]: an empty library with that tree's surface.
library() {
  local name=$1
  shift
  python3 "$checks/typed_stub.py" "$work/$name/abi/spec" >"$work/$name/stub.c"
  cc -std=c99 -g -shared -fPIC -fvisibility=hidden -I"$work/$name/include" "$@" \
    -Wl,--version-script="$work/$name/velo.map" \
    -Wl,-soname,libvelo.so.1 "$work/$name/stub.c" \
      -o "$work/$name/libvelo.so" 2>"$work/$name/build.log"
}

gate() { # gate <name> <headers>
  "$checks/abigail_gate.sh" "$work/$1/libvelo.so" "$work/base.abi.gz" "$2" "$work/$1/abi/spec" \
    "$source/abi/suppress.ini" \
    "$work/$1/gate" >"$work/$1/gate.log" 2>&1
}

lock() { # the unbroken release's lock against the broken headers
  cc -std=c11 -Werror -fsyntax-only -I"$work/$1/include" "$gate_files/layout_lock.c" \
    >"$work/$1/lock.log" 2>&1
}

missed=0
broken=0
verdict() { # verdict <name> <gate that must object>
  broken=$((broken + 1))
  if "$2" "$1" "$work/$1/include"; then
    echo "$2 accepts: $1"
    missed=$((missed + 1))
  else
    echo "$2 objects: $1"
  fi
}

# edit <name> <file> <sed expression>: must change something, or the break itself is broken.
edit() {
  cp "$work/$1/$2" "$work/$1/before"
  sed -i -E "$3" "$work/$1/$2"
  if cmp -s "$work/$1/$2" "$work/$1/before"; then
    echo "the break $1 changes nothing in $2"
    exit 1
  fi
}

tree base
library base
"$checks/abigail_write.sh" "$work/base/libvelo.so" "$work/base/include" "$work/base.abi"
gzip -9nk "$work/base.abi"
gate base "$work/base/include" || {
  echo "the control fails: $(cat "$work/base/gate.log")"; exit 1
}
lock base || { echo "the control's lock fails: $(cat "$work/base/lock.log")"; exit 1; }

tree function_added
edit function_added include/velo/stream.h 's|(VELO_API velo_status velo_stream_clear.*)|\1\nVELO_API velo_status velo_stream_extra(velo_stream stream);|'
edit function_added abi/spec/core.json 's|("functions": \[)|\1{"name": "velo_stream_extra", "header": "stream.h", "since": "1.0", "thread": "any", "doc": "x", "params": [{"name": "stream", "type": "velo_stream", "dir": "in"}], "errors": []},|'
edit function_added velo.map 's|(velo_stream_clear;)|\1 velo_stream_extra;|'
library function_added
gate function_added "$work/function_added/include" || {
  echo "an addition is refused: $(cat "$work/function_added/gate.log")"; exit 1
}

tree parameter_type
edit parameter_type include/velo/stream.h 's/int64_t timeout_ns/int32_t timeout_ns/'
edit parameter_type abi/spec/core.json 's/("name": "timeout_ns", "type": ")int64_t/\1int32_t/'
library parameter_type
verdict parameter_type gate

tree member_inserted
edit member_inserted include/velo/context.h 's|^(  uint64_t bytes_allocated;.*)|  uint64_t inserted;\n\1|'
library member_inserted
verdict member_inserted gate
verdict member_inserted lock

tree member_type
edit member_type include/velo/ops_norm.h '0,/double epsilon/s/double epsilon/float epsilon/'
library member_type
verdict member_type gate
verdict member_type lock

tree members_exchanged
edit members_exchanged include/velo/ops_norm.h '0,/const velo_tensor \*x;|const velo_tensor\* x;/s/const velo_tensor( ?\*) ?x;/const velo_tensor* first_was_x;/'
library members_exchanged
verdict members_exchanged lock

tree enumerator_renumbered
edit enumerator_renumbered include/velo/introspect.h \
  's/VELO_CAP_CLOSURES = 1/VELO_CAP_CLOSURES = 2/'
library enumerator_renumbered
verdict enumerator_renumbered lock

tree error_renumbered
edit error_renumbered include/velo/status.h 's/VELO_ERR_TIMEOUT = 34/VELO_ERR_TIMEOUT = 38/'
library error_renumbered
verdict error_renumbered lock

tree slots_exchanged
edit slots_exchanged include/velo/api.h 's/\(\*stream_query\)/(*stream_swapped)/; s/\(\*stream_clear\)/(*stream_query)/; s/stream_swapped/stream_clear/'
library slots_exchanged
verdict slots_exchanged lock

tree function_removed
edit function_removed velo.map '/velo_event_query;/d'
library function_removed
verdict function_removed gate

tree node_renamed
edit node_renamed velo.map 's/^VELO_1\.0/VELO_1.0_2/'
library node_renamed
verdict node_renamed gate

tree stripped
library stripped
strip "$work/stripped/libvelo.so"
verdict stripped gate

tree no_debug_information
library no_debug_information -g0
verdict no_debug_information gate

tree undefined_struct
library undefined_struct -DVELO_HOST_H # its header is not read
verdict undefined_struct gate

tree no_headers
library no_headers
mv "$work/no_headers/include" "$work/no_headers/elsewhere"
verdict no_headers gate

echo "$broken checks of broken surfaces, $missed missed"
[ $missed -eq 0 ]
