#!/usr/bin/env python3
"""The toy's operator through the ctypes module that follows from the grown spec.

    toy_ctypes.py FOLDER LIBRARY
"""
import ctypes
import sys

folder, library = sys.argv[1:]
sys.path.insert(0, folder)
import velo.ctypes as v  # noqa: E402

FLOAT32 = v.velo_dtype(v.VELO_DTYPE_FLOAT, 32, 1)


def tensors(rows):
    """A velo_tensors over rows of floats, and the arrays behind it."""
    data = [(ctypes.c_float * len(row))(*row) for row in rows]
    sizes = [(ctypes.c_int64 * 1)(len(row)) for row in rows]
    views = (v.velo_tensor * len(rows))(*[
        v.velo_tensor(ctypes.addressof(d), v.velo_device(v.VELO_DEVICE_CPU, 0), 1, FLOAT32, s, None,
                      0) for d, s in zip(data, sizes)])
    return v.velo_tensors(views, len(rows)), data, sizes


def main():
    lib = v.load(library)
    context, stream, toy = v.velo_context(), v.velo_stream(), v.velo_toy()
    v.check(lib, lib.velo_context_create(None, ctypes.byref(context)))
    v.check(lib, lib.velo_context_stream(context, ctypes.byref(stream)))
    v.check(lib, lib.velo_toy_create(context, ctypes.byref(toy)))
    xs, _, keep_x = tensors([[1, 2], [3]])
    ys, results, keep_y = tensors([[10, 10], [10]])
    args = v.velo_toy_scale_args(toy=toy, xs=ctypes.pointer(xs), ys=ctypes.pointer(ys),
                                 sign=b"minus")
    v.check(lib, lib.velo_toy_scale(stream, ctypes.byref(args)))
    got = [list(row) for row in results]
    if got != [[8, 6], [4]]:
        sys.exit(f"toy_scale gave {got}")
    lib.velo_toy_destroy(toy)
    status = lib.velo_toy_scale(stream, ctypes.byref(args))
    if status != v.VELO_ERR_HANDLE:
        sys.exit(f"a destroyed toy gave {status}")
    lib.velo_context_destroy(context)
    del keep_x, keep_y


main()
