"""Finds velo's two files, the library and its adapters, for every module of the package.

Each file is looked for in this order, and the first place that there is decides: what cannot be
opened there is an ImportError with a sentence, never a reason to take another file.

1. Its variable, VELO_LIBRARY or VELO_ADAPTERS: a path, or a name for the loader.
2. The other variable, so that one of them suffices: adapters that lie beside VELO_LIBRARY; the
   library that VELO_ADAPTERS is linked to.
3. The package's own folder, velo/lib, which a wheel brings. These two have names of their own, so
   that a libvelo.so.1 that the process has already is neither taken for them nor replaced by them.
4. The loader's path.

Importing this opens nothing. Opening a file twice is cheap, since the loader keeps it; each call
returns a ctypes.CDLL of its own, so that no module sees the types another one declares.
"""
import ctypes
import os

_OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")


class _File:
    """One of the two: its names, and a function by which it is known."""

    def __init__(self, variable, name, own, function):
        self.variable, self.name, self.own, self.function = variable, name, os.path.join(
            _OWN, own), function

    def named(self):
        """What the variable says; a path is made absolute, so that it stays the same file after a
        change of directory."""
        value = os.environ.get(self.variable)
        return os.path.abspath(value) if value and os.sep in value else value or None


_LIBRARY = _File("VELO_LIBRARY", "libvelo.so.1", "libvelo-wheel.so", "velo_version")
_ADAPTERS = _File("VELO_ADAPTERS", "libvelo_adapters.so.1", "libvelo_adapters-wheel.so",
                  "velo_adapters_last_error")


def library():
    """libvelo.so, opened."""
    if _LIBRARY.named() is None and _ADAPTERS.named() is not None:
        return ctypes.CDLL(_file_with(adapters().velo_version))
    return _open(_LIBRARY, _LIBRARY.named())


def adapters():
    """libvelo_adapters.so, opened. It is linked to the library that is opened with it, or that the
    process has already."""
    path = _ADAPTERS.named()
    if path is None and _LIBRARY.named() is not None:
        beside = os.path.join(os.path.dirname(_LIBRARY.named()), _ADAPTERS.name)
        path = beside if os.path.isfile(beside) else None
    return _open(_ADAPTERS, path)


def text_of(function):
    """What a function writes into a buffer: library.velo_error_text,
    library.velo_adapters_last_error."""
    text = ctypes.create_string_buffer(1024)
    function(text, ctypes.c_uint64(len(text)), None)
    return text.value.decode()


def path_of(opened):
    """The file that library() or adapters() came from, for a host that opens it itself; by a name
    that ends in .so where there is one, since some hosts go by that."""
    known = next(f for f in (_ADAPTERS, _LIBRARY) if hasattr(opened, f.function))
    path = _file_with(getattr(opened, known.function))
    plain = path[: path.rindex(".so") + 3]
    return plain if os.path.exists(plain) and os.path.samefile(plain, path) else path


def _open(file, path):
    if path is not None:
        place = f"{file.variable} leads to {path}" if file.named(
        ) is None else f"{file.variable} is {file.named()}"
    elif os.path.isfile(file.own):
        path, place = file.own, f"the package brings {file.own}"
    else:
        path, place = file.name, (f"{file.variable} is not set, there is no {file.own}, and "
                                  f"{file.name} is not on the loader's path")
    try:
        opened = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"velo cannot open its file {file.name}: {place}. The loader says: {error}. "
            f"Install velo's wheel or package, or set {file.variable} to the file.",
            name="velo",
            path=path) from None
    if not hasattr(opened, file.function):
        raise ImportError(
            f"velo cannot use {path} as {file.name}: {place}, and it has no {file.function}",
            name="velo",
            path=path)
    return opened


class _Found(ctypes.Structure):  # Dl_info
    _fields_ = [("path", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("at", ctypes.c_void_p)]


def _file_with(function):
    """The path under which the loader has the file that a function is in."""
    found = _Found()
    ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(found))
    return os.path.abspath(os.fsdecode(found.path))
