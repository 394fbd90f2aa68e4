#!/usr/bin/env python3
"""Whether every operator with a kernel for one ISA has one for another.

    listed.py LIBVELO ISA OTHER     prints the operators that lack it and exits 1

Operators over matrix products name their ISAs by hand; a name that is here without need is an error too.
"""
import ctypes
import json
import sys

BY_HAND = {"matmul", "matmul_add_fp32", "fusion_attention", "fusion_attention_backward"}


def described(velo, name):
    needed = ctypes.c_uint64()
    velo.velo_op_describe(name, None, ctypes.c_uint64(0), ctypes.byref(needed))
    text = ctypes.create_string_buffer(needed.value)
    assert velo.velo_op_describe(name, text, needed, None) == 0
    return json.loads(text.value)


def main():
    library, isa, other = sys.argv[1:]
    velo = ctypes.CDLL(library)
    count = ctypes.c_int64()
    assert velo.velo_op_count(ctypes.byref(count)) == 0 and count.value > 0
    wrong = 0
    for index in range(count.value):
        name = ctypes.c_char_p()
        assert velo.velo_op_name(ctypes.c_int64(index), ctypes.byref(name)) == 0
        kernels = [k["name"] for k in described(velo, name.value)["kernels"]]
        op = name.value.decode()
        print(f"{op}: {', '.join(kernels)}")
        if isa in kernels and (other in kernels) == (op in BY_HAND):
            print(f"  {'no longer names its ISAs by hand' if op in BY_HAND else 'lacks ' + other}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
