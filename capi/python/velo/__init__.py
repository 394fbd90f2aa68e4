"""velo in Python: one module a host, none of them compiled.

    import velo.torch       # operators with gradients, enable(), AdamW
    import velo.jax         # FFI handlers with gradients
    import velo.mindspore   # cells with gradients
    import velo.ctypes      # every function and struct of the C interface

Importing `velo` alone imports no framework and opens no library. All modules find the same two
files (velo/_libraries.py says in which order); `velo.__version__` is the release of the library
found.
"""


def library_path():
    """The file libvelo.so that the modules use, for a host that opens it itself."""
    from velo import _libraries
    return _libraries.path_of(_libraries.library())


def adapters_path():
    """The file libvelo_adapters.so that the modules use: what tvm_ffi.load_module and MindSpore's
    ops.Custom take."""
    from velo import _libraries
    return _libraries.path_of(_libraries.adapters())


def __getattr__(name):
    if name != "__version__":
        raise AttributeError(f"module 'velo' has no attribute '{name}'")
    import ctypes

    from velo import _libraries
    numbers = [ctypes.c_int32() for _ in range(3)]
    try:
        _libraries.library().velo_version(*map(ctypes.byref, numbers), None)
    except ImportError as missing:
        raise AttributeError(f"velo.__version__ is the library's, but {missing}") from None
    return ".".join(str(n.value) for n in numbers)
