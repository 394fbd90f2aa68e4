"""Every operator of velo on torch tensors, through the generated module of the C interface.

The library's own description names the fields. Tensors are passed as views of the framework's
memory; nothing is copied. A failed call raises VeloError with the record's sentence.
"""
import ctypes
import json
import os
import sys

from frameworks import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "capi", "python"))

import velo.ctypes as v  # noqa: E402
from velo.ctypes import VeloError  # noqa: E402,F401  (re-exported)

DTYPES = {
    torch.float32: (v.VELO_DTYPE_FLOAT, 32), torch.bfloat16: (v.VELO_DTYPE_BFLOAT, 16),
    torch.float64: (v.VELO_DTYPE_FLOAT, 64), torch.float16: (v.VELO_DTYPE_FLOAT, 16),
    torch.int32: (v.VELO_DTYPE_INT, 32), torch.int64: (v.VELO_DTYPE_INT, 64),
    torch.int8: (v.VELO_DTYPE_INT, 8), torch.uint8: (v.VELO_DTYPE_UINT, 8)
}


def integers(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def view(tensor):
    """A velo_tensor over a torch tensor's memory, which must outlive it."""
    return v.velo_tensor(tensor.data_ptr(), v.velo_device(v.VELO_DEVICE_CPU, 0), tensor.dim(),
                         v.velo_dtype(*DTYPES[tensor.dtype], 1), integers(tensor.shape),
                         integers(tensor.stride()), 0)


def views(tensors):
    """A velo_tensors over the memory of torch tensors, which must outlive it."""
    return v.velo_tensors((v.velo_tensor * max(len(tensors), 1))(*map(view, tensors)), len(tensors))


class Velo:
    """A context and its inline stream; velo.rms_norm(x=..., gamma=..., y=...) runs an operator on
    torch tensors."""

    def __init__(self, path, config=None, threads=0):
        self._lib = v.load(path)
        self._context, self._stream = v.velo_context(), v.velo_stream()
        desc = v.velo_context_desc(threads=threads, config_json=json.dumps(config or {}).encode())
        self._check(
            self._lib.velo_context_create(ctypes.byref(desc), ctypes.byref(self._context)))
        self._check(self._lib.velo_context_stream(self._context, ctypes.byref(self._stream)))
        size = ctypes.c_uint64()
        self._check(self._lib.velo_describe(None, 0, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        self._check(self._lib.velo_describe(text, size.value, None))
        described = json.loads(text.value)
        self._operators = {one["name"]: one["fields"] for one in described["operators"]}
        self._enums = {
            one["name"]: {each["name"]: each["value"] for each in one["values"]}
            for one in described["enums"]
        }

    def close(self):
        self._lib.velo_context_destroy(self._context)

    @staticmethod
    def local_groups(ranks):
        """A group of contexts of this process: a handle for each, freed by its context."""
        contexts = (v.velo_context * len(ranks))(*(one._context for one in ranks))
        groups = (v.velo_group * len(ranks))()
        ranks[0]._check(ranks[0]._lib.velo_group_create_local(contexts, len(ranks), None, groups))
        return list(groups)

    @property
    def names(self):
        return sorted(self._operators)

    def _check(self, status):
        v.check(self._lib, status)

    def pack(self, weight, transpose=False, weight_only=False):
        """A weight pack holding `weight`, of experts if it has three dimensions; freed by the
        context. With `weight_only` its integers are int8, or int4, two in each uint8."""
        *experts, k, n = weight.shape
        pairs = weight_only and weight.element_size() == 1 and "uint8" in str(weight.dtype)
        n *= 2 if pairs else 1
        if transpose:
            k, n = n, k
        matrix, handle = view(weight), v.velo_pack()
        dtype = v.velo_dtype(0, 4, 1) if pairs else matrix.dtype
        count = experts[0] if experts else 0
        desc = v.velo_pack_desc(
            transpose=int(transpose), dtype=dtype, k=k, n=n, count=count,
            weight_only=int(weight_only))
        self._check(
            self._lib.velo_pack_create(self._context, ctypes.byref(desc), ctypes.byref(handle)))
        self._check(self._lib.velo_pack_update(self._stream, handle, ctypes.byref(matrix)))
        return handle

    def __getattr__(self, name):
        if name not in self._operators:
            raise AttributeError(name)
        return lambda **values: self._call(name, values)

    def _call(self, name, values):
        fields = {field["name"]: field for field in self._operators[name]}
        unknown = set(values) - set(fields)
        if unknown:
            raise TypeError(f"{name} has no field {sorted(unknown)}")
        args = getattr(v, f"velo_{name}_args")()
        for field, value in values.items():
            kind = fields[field]["kind"]
            if value is None:
                continue
            if kind == "tensor":
                value = ctypes.pointer(view(value))
            elif kind == "tensors":
                value = ctypes.pointer(views(value))
            elif kind == "ints":
                value = ctypes.pointer(v.velo_ints(integers(value), len(value)))
            elif isinstance(value, str):
                value = self._enums[fields[field]["enum"]][value]
            setattr(args, field, value)
        self._check(getattr(self._lib, "velo_" + name)(self._stream, ctypes.byref(args)))
