"""velo through tvm-ffi: one file, loaded as a module, called with torch or numpy arrays over the
same memory.

Usage: VELO_ADAPTERS=.../libvelo_adapters.so python add_norm.py

A function takes its operator's fields in order, tensors first, then attributes; None leaves one
out, and trailing ones may be left off. Outputs are the caller's arrays. A refusal is a TypeError,
ValueError or RuntimeError with velo's sentence.
"""
import os

import numpy as np
import tvm_ffi

velo = tvm_ffi.load_module(os.environ.get("VELO_ADAPTERS",
                                          "libvelo_adapters.so"))  # tvm-ffi goes by the ending .so


def add_norm(a, b, gamma, epsilon=1e-6):
    """rms_norm(a + b) * gamma, and a + b."""
    total, y = np.empty_like(a), np.empty_like(a)
    velo.velo_add(a, b, total)
    velo.velo_rms_norm(total, gamma, y, None, epsilon)
    return y, total


if __name__ == "__main__":
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    print(add_norm(x, np.ones_like(x), np.ones(4, np.float32))[0])
    try:
        add_norm(x, np.ones_like(x), np.ones(5, np.float32))
    except ValueError as refused:
        print("refused:", refused)
