#!/usr/bin/env python3
"""Whether every operator with a kernel for one ISA has one for another.

    listed.py LIBVELO ISA OTHER     prints the operators that lack it and exits 1
"""
import ctypes
import json
import sys


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
        print(f"{name.value.decode()}: {', '.join(kernels)}")
        if isa in kernels and other not in kernels:
            print(f"  lacks {other}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
