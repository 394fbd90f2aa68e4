"""velo in Python: one module a host, none of them compiled.

    import velo.torch       # operators with gradients, enable(), AdamW
    import velo.jax         # FFI handlers with gradients
    import velo.mindspore   # cells with gradients
    import velo.ctypes      # every function and struct of the C interface

Importing `velo` alone imports no framework and loads no library.
"""
