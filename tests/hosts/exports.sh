#!/usr/bin/env bash
# libvelo_adapters.so exports entries and nothing else, three for every operator, and needs
# libvelo.so and the C++ runtime alone.
#
#   exports.sh LIBRARY LIBVELO
set -eu
library=$1 velo=$2
names=$(nm -D --defined-only "$library" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }')
strange=$(echo "$names" | grep -Ev '^(velo_(adapters|ms|xla|torch)_[a-z0-9_]+|velo_ms_slot_[0-9]+InferShape|__tvm_ffi_velo_[a-z0-9_]+)$' || true)
[ -z "$strange" ] || { echo "exported without being an entry: $strange"; exit 1; }
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
  grep -Ev '^(libvelo\.so\.1|lib(c|m|dl|pthread)\.so\.[0-9]+|libstdc\+\+\.so\.6|libgcc_s\.so\.1|ld-linux-x86-64\.so\.2)$' || true)
[ -z "$needed" ] || { echo "needs more than libvelo: $needed"; exit 1; }
operators=$(echo "$names" | sed -n 's/^velo_xla_//p' | sort)
for op in $operators; do
  for entry in "velo_ms_$op" "__tvm_ffi_velo_$op"; do
    echo "$names" | grep -qx "$entry" || { echo "$entry is missing"; exit 1; }
  done
  nm -D --defined-only "$velo" | grep -q " velo_$op@" || {
    echo "velo has no operator $op"
    exit 1
  }
done
[ "$(echo "$names" | grep -c '^velo_ms_slot_[0-9]*$')" = 512 ] || { echo "not 512 slots"; exit 1; }
readelf -d "$library" | grep -q 'NODELETE' || { echo "can be unmapped under its threads"; exit 1; }
