#!/usr/bin/env bash
# The library grown by a module that exists here alone: its spec, its header, one source; nothing
# else of the tree is edited.
#
#   toy.sh build SOURCE BUILD WORK GENERATOR TEST_MAIN   grows the tree, compiles what reads the
#                                                        tables, links library and tests
#   toy.sh MODE  ..   test: the operator every way in; sweep: every function with everything that is
#                wrong; ctypes: the generated
#                     module; exports, lock, header_docs, policy: the gates that a grown copy of the
#                     library can pass
set -eu
mode=$1 source=$2 build=$3 work=$4 generator=$5 test_main=$6
tree=$work/tree
flags=(-std=c++17 -O0 -Wall -Wextra -Wpedantic -Werror -I"$tree/capi/include" \
  -I"$tree/cpp/include" -I"$tree" -I"$source"
  -I"$source/tests" -I"$source/tests/hosts" -I"$source/capi/adapters/include" \
  -DVELO_ADAPTERS="\"$work/lib/libvelo_adapters.so.1\""
  -DVELO_SWEEP_FACTS_FILE="\"$source/tests/abi/sweep_facts.txt\"")

case $mode in
build)
  rm -rf "$work"
  mkdir -p "$work/objects" "$work/lib"
  python3 "$source/tests/toy/grow.py" "$source" "$tree" "$generator"
  "$generator" --spec "$tree/abi/spec" --gates "$work/gates"
  link=$source/abi/1.1-test/link.py
  python3 "$link" velo "$build" "$tree" "$work/objects" "$work/lib/libvelo.so.1" \
    "$source/tests/toy/toy.cpp"
  python3 "$link" velo_adapters "$build" "$tree" "$work/objects" "$work/lib/libvelo_adapters.so.1"
  libraries=("$work/lib/libvelo.so.1" "-Wl,-rpath,$work/lib" -ljansson -ldl -lpthread)
  hosts=("$source"/tests/hosts/{tvm_host,xla_host,samples}.cpp)
  c++ "${flags[@]}" -shared -fPIC -Wl,-soname,libtorch_cpu.so \
    "$source"/tests/hosts/torch/torch_host{,_schema}.cpp \
    -o "$work/lib/libtorch_cpu.so" -lpthread
  libraries+=("$work/lib/libtorch_cpu.so")
  c++ "${flags[@]}" -rdynamic "$source/tests/toy/toy_test.cpp" "${hosts[@]}" "$test_main" \
    "${libraries[@]}" -o "$work/toy_test"
  c++ "${flags[@]}" "$source/tests/abi/sweep_test.cpp" "$source"/tests/calls/{world,scene}.cpp \
    "$test_main" "${libraries[@]}" -o "$work/sweep_test"
  ;;
test) "$work/toy_test" ;;
sweep) "$work/sweep_test" ;;
ctypes) python3 "$source/tests/toy/toy_ctypes.py" "$tree/capi/python" "$work/lib/libvelo.so.1" ;;
exports) python3 "$source/abi/checks/elf_facts.py" exports "$work/lib/libvelo.so.1" "$tree" \
  "$build" ;;
lock)
  cc -std=c11 -Wall -Wextra -Wpedantic -Werror -DVELO_LOCK_CURRENT -I"$tree/capi/include" \
    -fsyntax-only "$work/gates/layout_lock.c"
  c++ "${flags[@]}" -DVELO_LOCK_CURRENT -x c++ -fsyntax-only "$work/gates/layout_lock.c"
  ;;
header_docs) python3 "$source/abi/checks/header_docs.py" "$tree/abi/spec" \
  "$tree/capi/include/velo" ;;
policy)
  # As if the release had shipped without the module: it belongs to a later release, and is refused
  # as a part of this one.
  if python3 "$source/abi/checks/spec_policy.py" "$source/abi/spec" "$tree/abi/spec"; then
    echo "FAILED: a release that has shipped may gain a module"
    exit 1
  fi
  rm -rf "$work/later"
  cp -r "$tree/abi/spec" "$work/later"
  sed -i -E 's/"since": "[0-9.]+"/"since": "9.0"/' "$work/later/toy.json" "$work/later/ops/toy.json"
  python3 "$source/abi/checks/spec_policy.py" "$source/abi/spec" "$work/later"
  ;;
esac
