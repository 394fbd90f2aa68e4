"""The library for torch: libvelo.so by ctypes, its operators as it describes them, torch tensors as
views.

velo_describe names every field, default and enumerator, and velo.ctypes has the structs, so nothing
is listed here. `call` runs an operator on tensors as they are, outputs included; `infer` says what
outputs must look like and reads no data. Memory comes from torch's allocator; there is a context
for each number of threads that torch has been set to. A call costs about 100 microseconds, most of
it ctypes: the operators of dispatcher.py are the fast way where torch has the functions for it.
"""
import ctypes
import json
import operator as python_operator
import os
import threading

import torch

import velo.ctypes as c
from velo import _libraries

_DTYPES = {
    torch.float32: (2, 32), torch.bfloat16: (4, 16), torch.float64: (2, 64), torch.float16: (2, 16),
    torch.int8: (0, 8), torch.int16: (0, 16), torch.int32: (0, 32), torch.int64: (0, 64),
    torch.uint8: (1, 8), torch.bool: (6, 8)
}
_FROM_DTYPE = {pair: dtype for dtype, pair in _DTYPES.items()}


class VeloError(RuntimeError):
    """A refused or failed call. The text is velo's record: function, argument, what was expected
    and what came."""


class Field:
    """A field of an operator's args struct."""

    def __init__(self, description, enumerators):
        self.name, self.kind, self.at = description["name"], description["kind"], description[
            "offset"]
        self.direction, self.optional = description.get("dir"), description.get("optional", False)
        self.strided = description.get("layout") == "strided"
        self.default, self.initial = description.get("default"), description.get("initial")
        self.dtypes = description.get("dtypes", ())
        self.enumerators = enumerators.get(description.get("enum"), {})


class Operator:
    """An operator, and its functional forms: what it reads and its attributes in field order, the
    results made by torch.

    arguments: read tensors and lists of them, among them `mutable` ones that change in place, and
    attributes.
    results: outputs that are required; all_results: all outputs. A tensor that `accumulate` adds to
    is a result, and then there is nothing to add to.
    """

    def __init__(self, description, enumerators):
        self.name, self.gradient_of, self.gradient = description["name"], description.get(
            "gradient_of"), None
        self.size, self.doc = description["args_size"], description["doc"]
        self.fields = [Field(f, enumerators) for f in description["fields"]]
        self.by_name = {f.name: f for f in self.fields}
        self.tensors = [f for f in self.fields if f.kind == "tensor"]
        held = [f for f in self.fields if f.kind in ("tensor", "tensors")]
        accumulates = "accumulate" in self.by_name
        self.mutable = [f for f in held if f.direction == "inout" and not accumulates]
        self.reads = [f for f in held if f.direction == "in" or f in self.mutable]
        self.attributes = [
            f for f in self.fields
            if f not in held and f.kind != "handle" and f.name != "accumulate"
        ]
        self.arguments = [f for f in self.fields if f in self.reads or f in self.attributes]
        self.all_results = [f for f in self.tensors if f not in self.reads]
        self.results = [f for f in self.all_results if not f.optional]


def _described(text):
    document = json.loads(text)
    enumerators = {}
    for enum in document["enums"] + [
            enum for o in document["operators"] for enum in o.get("enums", [])
    ]:
        enumerators[enum["name"]] = {value["name"]: value["value"] for value in enum["values"]}
    operators = {o["name"]: Operator(o, enumerators) for o in document["operators"]}
    for operator in operators.values():
        if operator.gradient_of:
            operators[operator.gradient_of].gradient = operator
    return operators


class Library:
    """libvelo.so, and a context with torch's memory for each number of threads that torch has been
    set to."""

    def __init__(self):
        self.c = c.load()
        self.operators = self._describe()
        self.entries = {name: self._entry(name) for name in self.operators}
        self.memory = {}  # address -> the torch tensor that owns it
        callbacks = dict(c.velo_allocator._fields_)
        self._allocate, self._deallocate = callbacks["allocate"](
            self._take), callbacks["deallocate"](self._give_back)
        self._allocator = c.velo_allocator(allocate=self._allocate, deallocate=self._deallocate)
        self.configured, self.opened, self.process = {}, {}, os.getpid()
        self.contexts_of_adapter = lambda: []  # velo_torch_register brings one
        self.shapes = c.velo_context(
        )  # for velo_op_infer: with memory of its own, since it is asked while torch traces
        self.check(self.c.velo_context_create(c.velo_context_desc(threads=1), self.shapes))

    def operator(self, name):
        if name not in self.operators:
            raise AttributeError(
                f"velo has no operator {name!r}; it has {', '.join(self.operators)}")
        return self.operators[name]

    def context(self):
        """The context, and its inline stream, with as many threads as torch has now."""
        threads = torch.get_num_threads()
        return self.opened.get(threads) or self._open(threads)

    def _open(self, threads):
        if self.opened and os.getpid(
        ) != self.process:  # a forked child: velo refuses it the parent's, and says why
            return next(iter(self.opened.values()))
        desc = c.velo_context_desc(threads=threads, allocator=ctypes.pointer(self._allocator))
        context, stream = c.velo_context(), c.velo_stream()
        with _lock:
            if threads not in self.opened:
                self.check(self.c.velo_context_create(desc, context))
                self.check(self.c.velo_context_stream(context, stream))
                for key, value in self.configured.items():
                    self.check(self.c.velo_config_set(context, key, value))
                self.opened[threads] = context, stream
        return self.opened[threads]

    def _describe(self):
        size = ctypes.c_uint64()
        self.check(self.c.velo_describe(None, 0, size))
        text = ctypes.create_string_buffer(size.value)
        self.check(self.c.velo_describe(text, size, None))
        return _described(text.value)

    def _entry(self, name):
        entry = self.c[
            "velo_" +
            name]  # a function object of its own: plain addresses are the cheapest parameters
        entry.argtypes, entry.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int32
        return entry

    def _take(self, _user, size, _alignment, _device, _stream):
        memory = torch.empty(
            size + 64,
            dtype=torch.uint8)  # torch aligns to 64 bytes; the slack is for builds that do not
        address = (memory.data_ptr() + 63) // 64 * 64
        self.memory[address] = memory
        return address

    def _give_back(self, _user, address, _size, _device, _stream):
        self.memory.pop(address, None)

    def check(self, status):
        if status != 0:
            raise VeloError(_libraries.text_of(self.c.velo_error_text))

    def configure(self, key, value):
        """Sets a key of every context, the adapter's too, and of those to come."""
        key, value = key.encode(), str(value).encode()
        self.context()
        with _lock:
            contexts = [context for context, _ in self.opened.values()] + self.contexts_of_adapter()
            before = [self._value(context, key) for context in contexts]
            try:
                for context in contexts:
                    self.check(self.c.velo_config_set(context, key, value))
            except VeloError:  # none of them is left with a value that the others have not
                for context, kept in zip(contexts, before):
                    self.c.velo_config_set(context, key, kept)
                raise
            self.configured[key] = value

    def _value(self, context, key):
        text, size = ctypes.create_string_buffer(256), ctypes.c_uint64()
        self.check(self.c.velo_config_get(context, key, text, len(text), size, None))
        return text.value

    def get(self, key):
        """A key's value, as text."""
        return self._value(self.context()[0], key.encode()).decode()


_lock = threading.Lock()
_loaded = None


def library():
    """The library, loaded on first use. After a fork the child is refused by velo itself, with a
    clear error."""
    global _loaded
    if _loaded is None:
        with _lock:
            _loaded = _loaded or Library()
    return _loaded


# ---- values: a field's number, a tensor's view

def _known(operator, field, value):
    """The refusal's sentence: what the attribute may be, and what came."""
    known = "True or False" if field.kind == "bool" else ", ".join(
        field.enumerators) or "an integer"
    return f"velo_{operator.name}: {field.name} is {known}; got {value!r}"


def number_of(operator, field, value):
    """The integer behind an attribute: itself, an enumerator's, named by text or (of element types)
    by a torch dtype. True and False are for flags alone: in place of a number they were meant for
    another argument."""
    name = str(value).rsplit(".", 1)[-1] if isinstance(value, torch.dtype) else value
    if isinstance(name, str):
        if name not in field.enumerators:
            raise ValueError(_known(operator, field, value))
        return field.enumerators[name]
    try:
        number = python_operator.index(value)
    except TypeError:
        raise TypeError(_known(operator, field, value)) from None
    flag = field.kind == "bool"
    if isinstance(value, bool) and not flag:
        raise TypeError(_known(operator, field, value))
    if flag and number not in (0, 1):
        raise ValueError(_known(operator, field, value))
    if not -(2**63) <= number < 2**63:
        raise ValueError(
            f"velo_{operator.name}: {field.name} is an integer of 64 bits; got {value!r}")
    return number


def real_of(operator, field, value):
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"velo_{operator.name}: {field.name} is a number; got {value!r}")
    return float(value)


def _view(operator, field, tensor, keep):
    """The address of a velo_tensor over a torch tensor's memory."""
    where = f"velo_{operator.name}: args.{field.name}"
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_nested:
        raise VeloError(
            f"{where}.device: expected a dense tensor on the CPU, got {tensor.layout} on "
            f"{tensor.device}"
        )
    if tensor.is_neg() or tensor.is_conj():  # the memory holds other numbers than the tensor
        if field.direction != "in":
            raise VeloError(
                f"{where}: expected a tensor to write to, got a negated or conjugated view")
        tensor = tensor.resolve_conj().resolve_neg()
    return _described_view(operator, field, tensor.data_ptr(), tensor.shape, tensor.stride(),
                           tensor.dtype, keep, tensor)


def _views(operator, field, tensors, keep):
    """The address of a velo_tensors over torch tensors' memory."""
    views = (_View * max(len(tensors), 1))()
    for at, tensor in enumerate(tensors):
        views[at] = _View.from_address(_view(operator, field, tensor, keep))
    listed = c.velo_tensors(ctypes.cast(views, ctypes.POINTER(c.velo_tensor)), len(tensors))
    keep += (views, listed)
    return ctypes.addressof(listed)


def _described_view(operator, field, data, shape, strides, dtype, keep, owner=None):
    if dtype not in _DTYPES:
        raise VeloError(
            f"velo_{operator.name}: args.{field.name}.dtype: expected "
            f"{' or '.join(field.dtypes) or 'another'}, got {dtype}"
        )
    rank = len(shape)
    numbers = (ctypes.c_int64 * (2 * rank + 1))(*shape, *strides)
    address = ctypes.addressof(numbers)
    view = _View(data, 1, 0, rank, *_DTYPES[dtype], 1, address, address + 8 * rank, 0)
    keep += (numbers, owner, view)
    return ctypes.addressof(view)


class _View(ctypes.Structure):
    """velo_tensor with its parts laid open and addresses for pointers: a third of the time that
    making it from its own costs."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


assert ctypes.sizeof(_View) == ctypes.sizeof(c.velo_tensor)


# ---- calls

def call(name, **values):
    """Runs an operator on torch tensors, outputs included: call("rms_norm", x=x, gamma=g, y=y,
    epsilon=1e-5)."""
    lib = library()
    operator, keep, written = lib.operator(name), [], []
    block = ctypes.create_string_buffer(operator.size)
    ctypes.c_uint32.from_buffer(block).value = operator.size
    for field in operator.fields:
        value = values.pop(field.name, None)
        value = field.default if value is None else value
        if value is None:
            continue
        if field.kind == "f64":
            ctypes.c_double.from_buffer(block, field.at).value = real_of(operator, field, value)
        elif field.kind == "tensor":
            ctypes.c_uint64.from_buffer(block, field.at).value = _view(operator, field, value, keep)
            if field.direction != "in":
                written.append(value)
        elif field.kind == "tensors":
            ctypes.c_uint64.from_buffer(block,
                                        field.at).value = _views(operator, field, value, keep)
            if field.direction != "in":
                written += value
        elif field.kind == "ints":
            ctypes.c_uint64.from_buffer(block,
                                        field.at).value = _list_of(operator, field, value, keep)
        else:
            ctypes.c_int64.from_buffer(block, field.at).value = number_of(operator, field, value)
    if values:
        raise TypeError(
            f"velo_{name} has no field {', '.join(values)}; it has {', '.join(operator.by_name)}")
    with torch.no_grad():
        for tensor in written:
            tensor.copy_(
                tensor)  # which torch counts as a write, for autograd to see, and copies nothing
    lib.check(lib.entries[name](lib.context()[1], block))


def _list_of(operator, field, value, keep):
    numbers = (ctypes.c_int64 * max(len(value), 1))(*(number_of(operator, field, v) for v in value))
    ints = c.velo_ints(numbers, len(value))
    keep += (numbers, ints)
    return ctypes.addressof(ints)


def infer(name, **values):
    """What the outputs must look like: {field: (shape, dtype)}. A tensor is anything with a shape
    and a dtype."""
    lib = library()
    operator, keep, named = lib.operator(name), [], []
    for field in operator.fields:
        value = values.get(field.name)
        if value is None:
            continue
        one = c.velo_named_value(field.name.encode())
        if field.kind == "tensor":
            shape = tuple(int(size) for size in value.shape)
            strides = [1] * len(shape)
            for at in range(len(shape) - 2, -1, -1):
                strides[at] = strides[at + 1] * max(shape[at + 1], 1)
            one.value.kind, one.value.as_.p = c.VELO_VALUE_TENSOR, _described_view(
                operator, field, 0, shape, strides, value.dtype, keep)
        elif field.kind == "f64":
            one.value.kind, one.value.as_.f = c.VELO_VALUE_FLOAT, real_of(operator, field, value)
        elif field.kind == "ints":
            one.value.kind, one.value.as_.p = c.VELO_VALUE_INTS, _list_of(
                operator, field, value, keep)
        else:
            one.value.kind, one.value.as_.i = c.VELO_VALUE_INT, number_of(operator, field, value)
        named.append(one)
    shapes, count = (c.velo_shape * 16)(), ctypes.c_int64()
    shapes[0].struct_size = ctypes.sizeof(c.velo_shape)
    status = lib.c.velo_op_infer(lib.shapes,
                                 name.encode(), (c.velo_named_value * max(len(named), 1))(*named),
                                 len(named), shapes, 16, count)
    if status != 0:  # in the name of the operator, whose call it stands for
        raise VeloError(
            _libraries.text_of(lib.c.velo_error_text).replace("velo_op_infer:", f"velo_{name}:", 1))
    return {
        s.name.decode(): (tuple(s.sizes[:s.ndim]), _FROM_DTYPE[s.dtype.code, s.dtype.bits])
        for s in shapes[:count.value]
    }
