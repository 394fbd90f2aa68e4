"""libvelo.so from Python by ctypes, driven by the ABI's own spec: the least a host needs to call
every operator.

An args struct is {uint32 struct_size, uint32 reserved} and one 8-byte slot per field, so the field
list of abi/spec is all that is needed. Tensors are passed as views of the framework's memory;
nothing is copied. A failed call raises VeloError with the record's sentence.
"""
import ctypes
import json
import os

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Dtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32),
                ("dtype", Dtype), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Ints(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_int64)), ("count", ctypes.c_int64)]


class PackDesc(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("transpose", ctypes.c_int32), ("dtype", Dtype),
                ("reserved", ctypes.c_uint32), ("k", ctypes.c_int64), ("n", ctypes.c_int64)]


class VeloError(RuntimeError):
    """A refused or failed call; the text is velo's error record."""


def _operators():
    """Name -> fields (with enumerators resolved), read from abi/spec."""
    spec = os.path.join(ROOT, "abi", "spec")
    with open(os.path.join(spec, "ops.json"), encoding="utf-8") as file:
        families = json.load(file)["families"]
    operators = {}
    for family in families:
        with open(os.path.join(spec, "ops", family + ".json"), encoding="utf-8") as file:
            content = json.load(file)
        enums = {
            e["name"]: {v["name"]: v["value"] for v in e["value"
                                                         "s"]} for e in content.get("enums", [])
        }
        for operator in content["ops"]:
            for field in operator["fields"]:
                if field["kind"] == "enumeration":
                    field["enumerators"] = enums[field["enum"]]
            operators[operator["name"]] = operator["fields"]
    return operators


class Velo:
    """A context and its inline stream; velo.rms_norm(x=..., gamma=..., y=...) runs an operator on
    torch tensors."""

    def __init__(self, path, config=None, threads=0):
        self._lib = ctypes.CDLL(path)
        self._operators = _operators()
        self._context = ctypes.c_void_p()
        self._stream = ctypes.c_void_p()
        desc = (ctypes.c_uint8 * 64)()
        ctypes.memset(desc, 0, 64)
        text = ctypes.c_char_p(json.dumps(config or {}).encode())
        struct = ctypes.c_uint32.from_buffer(desc, 0)
        struct.value = 64
        ctypes.c_int32.from_buffer(desc, 4).value = threads
        ctypes.c_int32.from_buffer(desc, 8).value = 1  # VELO_DEVICE_CPU
        ctypes.c_void_p.from_buffer(desc, 48).value = ctypes.cast(text, ctypes.c_void_p).value
        self._check(self._lib.velo_context_create(desc, ctypes.byref(self._context)))
        self._check(self._lib.velo_context_stream(self._context, ctypes.byref(self._stream)))

    def close(self):
        self._lib.velo_context_destroy.restype = None
        self._lib.velo_context_destroy(self._context)

    @staticmethod
    def local_groups(ranks):
        """A group of contexts of this process: a handle for each, freed by its context."""
        contexts = (ctypes.c_void_p * len(ranks))(*(one._context.value for one in ranks))
        groups = (ctypes.c_void_p * len(ranks))()
        ranks[0]._check(ranks[0]._lib.velo_group_create_local(contexts, len(ranks), None, groups))
        return [ctypes.c_void_p(group) for group in groups]

    @property
    def names(self):
        return sorted(self._operators)

    def _check(self, status):
        if status == 0:
            return
        text = ctypes.create_string_buffer(1024)
        self._lib.velo_error_text(text, ctypes.c_uint64(len(text)), None)
        raise VeloError(text.value.decode())

    @staticmethod
    def view(tensor):
        """A velo_tensor over a torch tensor's memory, and what must stay alive with it."""
        names = {
            "torch.float32": (2, 32), "torch.bfloat16": (4, 16), "torch.float64": (2, 64),
            "torch.float16": (2, 16), "torch.int32": (0, 32), "torch.int64": (0, 64),
            "torch.uint8": (1, 8)
        }
        code, bits = names[str(tensor.dtype)]
        rank = tensor.dim()
        shape = (ctypes.c_int64 * max(rank, 1))(*tensor.shape)
        strides = (ctypes.c_int64 * max(rank, 1))(*tensor.stride())
        view = Tensor(tensor.data_ptr(), Device(1, 0), rank, Dtype(code, bits, 1), shape, strides,
                      0)
        return view, (shape, strides, tensor)

    def pack(self, weight, transpose=False):
        """A weight pack holding `weight`; freed by the context."""
        k, n = (weight.shape[1], weight.shape[0]) if transpose else weight.shape
        view, keep = self.view(weight)
        desc = PackDesc(ctypes.sizeof(PackDesc), int(transpose), view.dtype, 0, k, n)
        handle = ctypes.c_void_p()
        self._check(
            self._lib.velo_pack_create(self._context, ctypes.byref(desc), ctypes.byref(handle)))
        self._check(self._lib.velo_pack_update(self._stream, handle, ctypes.byref(view)))
        del keep
        return handle

    def __getattr__(self, name):
        if name not in self._operators:
            raise AttributeError(name)
        return lambda **values: self._call(name, values)

    def _call(self, name, values):
        fields = self._operators[name]
        unknown = set(values) - {field["name"] for field in fields}
        if unknown:
            raise TypeError(f"{name} has no field {sorted(unknown)}")
        keep = []
        block = ctypes.create_string_buffer(8 + 8 * len(fields))
        ctypes.c_uint32.from_buffer(block, 0).value = len(block)
        for index, field in enumerate(fields):
            at, value = 8 + 8 * index, values.get(field["name"], field.get("default"))
            kind = field["kind"]
            if value is None:
                continue
            if kind == "tensor":
                view, alive = self.view(value)
                keep.append((view, alive))
                ctypes.c_void_p.from_buffer(block, at).value = ctypes.addressof(view)
            elif kind == "ints":
                data = (ctypes.c_int64 * max(len(value), 1))(*value)
                ints = Ints(data, len(value))
                keep.append((ints, data))
                ctypes.c_void_p.from_buffer(block, at).value = ctypes.addressof(ints)
            elif kind == "handle":
                ctypes.c_void_p.from_buffer(block, at).value = value.value
            elif kind == "f64":
                ctypes.c_double.from_buffer(block, at).value = value
            else:
                number = field["enumerators"][value] if isinstance(value, str) else int(value)
                ctypes.c_int64.from_buffer(block, at).value = number
        self._check(getattr(self._lib, "velo_" + name)(self._stream, block))
