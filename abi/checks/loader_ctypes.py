#!/usr/bin/env python3
"""The loader matrix from Python: ctypes opens libvelo.so locally, globally and twice, computes, and
forgets it while it works.

    loader_ctypes.py LIBRARY
"""
import _ctypes
import array
import ctypes
import sys


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class NamedValue(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("pointer", ctypes.c_void_p)]


def tensor(values, shape):
    return Tensor(values.buffer_info()[0], 1, 0, 1, 2, 32, 1, shape, None, 0)


def compute(library, close=False):
    n = 1 << 16
    a, b, y = (array.array("f", [v]) * n for v in (1, 2, 0))
    shape = (ctypes.c_int64 * 1)(n)
    tensors = [tensor(values, shape) for values in (a, b, y)]
    values = (NamedValue * 3)(*[
        NamedValue(name, 4, 0, ctypes.addressof(t)) for name, t in zip((b"a", b"b", b"y"), tensors)
    ])
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.velo_context_create(None, ctypes.byref(context)) == 0
    assert library.velo_stream_create(context, ctypes.byref(stream)) == 0
    for _ in range(50):
        assert library.velo_op_call(stream, b"add", values, ctypes.c_int64(3)) == 0
    synchronize, destroy = library.velo_stream_synchronize, library.velo_context_destroy
    if close:
        _ctypes.dlclose(library._handle)
    assert synchronize(stream) == 0
    destroy.restype = None
    destroy(context)
    assert y[0] == 3 and y[-1] == 3


def main():
    path = sys.argv[1]
    compute(ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL))
    compute(ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL))
    compute(ctypes.CDLL(path), close=True)
    compute(ctypes.CDLL(path))
    print("local, global, closed with workers alive, and opened again")


if __name__ == "__main__":
    main()
