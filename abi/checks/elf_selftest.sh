#!/usr/bin/env bash
# Proves that every ELF fact can fail: builds a library that breaks them all and expects red from
# each.
#
#   elf_selftest.sh SOURCE_DIR WORK_DIR
set -eu
source=$1 work=$2
rm -rf "$work"
mkdir -p "$work/abi" "$work/velo_objects.dir"
cp -r "$source/abi/spec" "$work/abi/spec"
printf 'GLIBC 2.2.5\nGLIBCXX 3.4\n' >"$work/abi/ceilings.txt" # lower than anything built here
command="c++ -std=c++17 -O0 -g -fPIC -fno-stack-protector -U_FORTIFY_SOURCE -mavx2 -ftls-model=initial-exec -c $source/abi/checks/broken.cpp -o velo_objects.dir/broken.o"
(cd "$work" && $command)
c++ -shared -Wl,--no-as-needed "$work/velo_objects.dir/broken.o" -lresolv -ldl -Wl,-rpath,/nowhere \
  -Wl,-z,execstack -Wl,-z,norelro \
  -Wl,-z,lazy -o "$work/broken.so" 2>"$work/link.log"
head -c 9M /dev/urandom >"$work/ballast"
objcopy --add-section .ballast="$work/ballast" --set-section-flags .ballast=alloc,readonly \
  "$work/broken.so" "$work/large.so" 2>>"$work/link.log"
printf '[{"directory": "%s", "command": "%s", "file": "broken.cpp"}]' "$work" \
  "$command" >"$work/compile_commands.json"

missed=0
for fact in exports symbols needed soname flags locks hardened tls constructors ceilings isa \
  size; do
  library=$work/broken.so
  [ $fact != size ] || library=$work/large.so
  if python3 "$source/abi/checks/elf_facts.py" $fact "$library" "$work" \
    "$work" >"$work/$fact.log" 2>&1; then
    echo "fact $fact accepts the broken library"
    missed=$((missed + 1))
  elif grep -q Traceback "$work/$fact.log"; then
    echo "fact $fact broke down: $(tail -1 "$work/$fact.log")"
    missed=$((missed + 1))
  else
    echo "$fact objects $(wc -l <"$work/$fact.log") times: $(head -1 "$work/$fact.log")"
  fi
done
[ $missed -eq 0 ]
