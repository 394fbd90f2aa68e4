"""velo for MindSpore: its operators as cells with gradients, in PyNative and in graph mode, through ops.Custom(.., "aot").

    import velo.mindspore as velo
    norm = velo.RmsNorm(epsilon=1e-6)
    y = norm(x, gamma)                  # differentiable; inside ms.jit too

libvelo_adapters.so exports the functions that MindSpore launches; nothing is compiled. MindSpore's AOT convention knows no
attributes, so each cell binds its own to a slot (velo_ms_slot_bind) when it is made and launches velo_ms_slot_NNN; equal cells share
a slot, and there are 128. Shapes and dtypes come from velo_op_infer, so whatever velo would refuse is refused when the graph is
built, as a ValueError with velo's sentence. velo/_libraries.py says where the library is found.
"""
import ctypes
import json
import os

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from velo import _libraries

_DTYPES = {ms.float32: (2, 32), ms.bfloat16: (4, 16), ms.float64: (2, 64), ms.float16: (2, 16), ms.int32: (0, 32),
           ms.int64: (0, 64)}
_FROM_DTYPE = {pair: dtype for dtype, pair in _DTYPES.items()}


# ---- the library

class _Dtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):  # velo_tensor, DLPack's DLTensor
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("dtype", _Dtype),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


class _Value(ctypes.Structure):  # velo_named_value
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int32), ("reserved", ctypes.c_int32), ("word", ctypes.c_uint64)]


class _Shape(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("ndim", ctypes.c_int32), ("dtype", _Dtype), ("reserved", ctypes.c_uint32),
                ("sizes", ctypes.c_int64 * 8), ("name", ctypes.c_char * 32)]


_library = _libraries.adapters()
_path = os.path.realpath(_libraries.path_of(_library))  # what MindSpore takes; the same file is the same library with the same slots


def _text(function):
    text = ctypes.create_string_buffer(1024)
    function(text, ctypes.c_uint64(len(text)), None)
    return text.value.decode()


def last_error():
    """The sentence of the latest failed launch, of which MindSpore's exception shows only the number."""
    return _text(_library.velo_adapters_last_error)


def _described():
    """Enumerators by operator and field, from the library's description of itself."""
    size = ctypes.c_uint64()
    _library.velo_describe(None, ctypes.c_uint64(0), ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    _library.velo_describe(text, size, None)
    document = json.loads(text.value)
    enums = {e["name"]: e for o in [document, *document["operators"]] for e in o.get("enums", [])}
    return {(o["name"], f["name"]): {v["name"]: v["value"] for v in enums[f["enum"]]["values"]}
            for o in document["operators"] for f in o["fields"] if f.get("enum") in enums}


_enumerators = _described()


def _values(op, tensors, attributes):
    """Tensors as {field: (shape, dtype, address)} and attributes as an array of named values, and what must outlive it."""
    keep, values = [], []
    for name, (shape, dtype, address) in tensors.items():
        if dtype not in _DTYPES:
            raise ValueError(f"velo_{op}: args.{name}.dtype: velo has no name for {dtype}")
        sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        code, bits = _DTYPES[dtype]
        view = _Tensor(address, (1, 0), len(shape), _Dtype(code, bits, 1), ctypes.addressof(sizes), None, 0)
        keep += (sizes, view)
        values.append(_Value(name.encode(), 4, 0, ctypes.addressof(view)))
    for name, value in attributes.items():
        if isinstance(value, float):
            values.append(_Value(name.encode(), 2, 0, int.from_bytes(bytes(ctypes.c_double(value)), "little")))
        else:
            number = _enumerators[op, name][value] if isinstance(value, str) else int(value)
            values.append(_Value(name.encode(), 1, 0, number & (2**64 - 1)))
    return (_Value * len(values))(*values), keep


def _infer(op, inputs, attributes):
    """{output: (shape, dtype)} for inputs given as {field: (shape, dtype)}."""
    values, _keep = _values(op, {name: (*given, None) for name, given in inputs.items()}, attributes)
    shapes, count, context = (_Shape * 16)(), ctypes.c_int64(), ctypes.c_void_p()
    shapes[0].struct_size = ctypes.sizeof(_Shape)
    _library.velo_adapters_context(ctypes.byref(context))
    status = _library.velo_op_infer(context, op.encode(), values, ctypes.c_int64(len(values)), shapes, ctypes.c_int64(16),
                                    ctypes.byref(count))
    if status != 0:
        raise ValueError(_text(_library.velo_error_text))
    return {s.name.decode(): (list(s.sizes[: s.ndim]), _FROM_DTYPE[s.dtype.code, s.dtype.bits]) for s in shapes[: count.value]}


class Operator(ops.Custom):
    """One operator with its attributes bound: Operator("rms_norm", "x,gamma->y,rstd", epsilon=1e-5)(x, gamma) is (y, rstd)."""

    def __init__(self, op, fields, bprop=None, **attributes):
        self._op, self._attributes = op, attributes
        self._inputs, self._outputs = (side.split(",") for side in fields.split("->"))
        slot, document = ctypes.c_int32(), json.dumps({"fields": fields, **attributes})
        if _library.velo_ms_slot_bind(-1, op.encode(), document.encode(), ctypes.byref(slot)) != 0:
            raise ValueError(last_error())
        super().__init__(f"{_path}:velo_ms_slot_{slot.value:03d}", lambda *_: None, lambda *_: None, "aot", bprop)

    def __infer__(self, *tensors):  # called by MindSpore with {"shape", "dtype", "value"} a tensor
        inputs = {name: (t["shape"], t["dtype"].element_type()) for name, t in zip(self._inputs, tensors)}
        made = _infer(self._op, inputs, self._attributes)
        shapes, dtypes = zip(*(made[name] for name in self._outputs))
        if [] in shapes:
            raise ValueError(f"velo_{self._op}: expected outputs of rank 1 or more, got a scalar: MindSpore loses its gradient")
        if len(shapes) == 1:
            return {"shape": shapes[0], "dtype": dtypes[0], "value": None}
        return {"shape": shapes, "dtype": dtypes, "value": None}


# ---- operators as cells. bprop of a primitive gets its inputs, its outputs and the outputs' gradients.

class RmsNorm(nn.Cell):
    def __init__(self, epsilon=1e-6):
        super().__init__()
        backward = Operator("rms_norm_backward", "dy,x,gamma,rstd->dx,dgamma")

        def bprop(x, gamma, out, dout):
            dx, dgamma = backward(dout[0], x, gamma, out[1])
            return dx, dgamma.astype(gamma.dtype)

        self.run = Operator("rms_norm", "x,gamma->y,rstd", bprop, epsilon=float(epsilon))

    def construct(self, x, gamma):
        return self.run(x, gamma)[0]


class Swiglu(nn.Cell):
    def __init__(self, dim=-1):
        super().__init__()
        backward = Operator("swiglu_backward", "dy,x->dx", dim=dim)

        def bprop(x, _out, dout):
            return (backward(dout, x),)

        self.run = Operator("swiglu", "x->y", bprop, dim=dim)

    def construct(self, x):
        return self.run(x)


class RotaryPositionEmbedding(nn.Cell):
    """x is 4-D; cos and sin broadcast against it. The tables get no gradient."""

    def __init__(self, mode="half"):
        super().__init__()
        backward = Operator("rotary_position_embedding_backward", "dy,cos,sin->dx", mode=mode)

        def bprop(_x, cos, sin, _out, dout):
            return backward(dout, cos, sin), ops.zeros_like(cos), ops.zeros_like(sin)

        self.run = Operator("rotary_position_embedding", "x,cos,sin->y", bprop, mode=mode)

    def construct(self, x, cos, sin):
        return self.run(x, cos, sin)


class FusionAttention(nn.Cell):
    """[B, S, N, D] tensors; key and value may have fewer heads than the query's `heads` of `width`. causal: row i sees j <= i."""

    def __init__(self, heads, width, causal=False, scale=None):
        super().__init__()
        options = {"layout": "bsnd", "head_num": heads, "sparse_mode": "left_up_causal" if causal else "full",
                   "scale": float(width**-0.5 if scale is None else scale)}
        backward = Operator("fusion_attention_backward",
                            "query,key,value,dy,softmax_max,softmax_sum,attention_out->dquery,dkey,dvalue", **options)

        def bprop(query, key, value, out, dout):
            return backward(query, key, value, dout[0], out[1], out[2], out[0])

        self.run = Operator("fusion_attention", "query,key,value->attention_out,softmax_max,softmax_sum", bprop, **options)

    def construct(self, query, key, value):
        return self.run(query, key, value)[0]


class Embedding(nn.Cell):
    """Rows of a table of `rows` rows."""

    def __init__(self, rows):
        super().__init__()
        backward = Operator("embedding_backward", "ids,dy->dtable", rows=rows)

        def bprop(ids, table, _out, dout):
            return ops.zeros_like(ids), backward(ids, dout).astype(table.dtype)

        self.run = Operator("embedding", "ids,table->y", bprop)

    def construct(self, ids, table):
        return self.run(ids, table)


class CrossEntropy(nn.Cell):
    """velo gives a loss a token, MindSpore adds them up: in graph mode it takes a custom operator's output of rank 0 for a constant,
    whose gradient is nothing."""

    def __init__(self, ignore_index=-100, reduction="mean"):
        super().__init__()
        self.ignored, self.reduction = ignore_index, reduction
        options = {"ignore_index": ignore_index, "reduction": "none"}
        backward = Operator("cross_entropy_backward", "dloss,logits,targets,lse->dlogits", **options)

        def bprop(logits, targets, out, dout):
            return backward(dout[0], logits, targets, out[1]), ops.zeros_like(targets)

        self.run = Operator("cross_entropy", "logits,targets->loss,lse", bprop, **options)

    def construct(self, logits, targets):
        loss = self.run(logits, targets)[0]
        if self.reduction == "none":
            return loss
        if self.reduction == "sum":
            return loss.sum()
        return loss.sum() / (targets != self.ignored).astype(ms.float32).sum()


class Matmul(nn.Cell):
    """a @ b for matrices, b transposed when transpose_b; gradients in the dtype of what they belong to."""

    def __init__(self, transpose_b=False):
        super().__init__()
        to_a = Operator("matmul", "a,b->c", transpose_b=not transpose_b)
        to_b = Operator("matmul", "a,b->c", transpose_a=True)

        def bprop(a, b, _out, dout):
            return to_a(dout, b), to_b(dout, a) if transpose_b else to_b(a, dout)

        self.run = Operator("matmul", "a,b->c", bprop, transpose_b=transpose_b)

    def construct(self, a, b):
        return self.run(a, b)


class Add(nn.Cell):
    def __init__(self):
        super().__init__()

        def bprop(_a, _b, _out, dout):
            return dout, dout

        self.run = Operator("add", "a,b->y", bprop)

    def construct(self, a, b):
        return self.run(a, b)


# ---- the optimizer

class AdamW:
    """AdamW over parameters, two moments each: step(gradients), in the order of the parameters. bfloat16 parameters keep a float32
    master.

    A custom operator of MindSpore's cannot write into its inputs, so the step goes past ops.Custom: velo is given the tensors' own
    memory and updates it in place.
    """

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), epsilon=1e-8, weight_decay=0.0):
        self.lr, self.count, self.parameters = lr, 0, list(parameters)
        self.options = {"beta1": float(betas[0]), "beta2": float(betas[1]), "epsilon": float(epsilon),
                        "weight_decay": float(weight_decay)}
        self.states = [{name: ms.Tensor(np.zeros(p.shape, np.float32)) for name in ("m", "v")} for p in self.parameters]
        for parameter, state in zip(self.parameters, self.states):
            if parameter.dtype == ms.bfloat16:
                state["master"] = ms.Tensor(parameter.astype(ms.float32).asnumpy().copy())
        context, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        _library.velo_adapters_context(ctypes.byref(context))
        _library.velo_context_stream(context, ctypes.byref(self.stream))

    def step(self, gradients):
        self.count += 1
        options = {"step": self.count, "lr": float(self.lr), **self.options}
        for parameter, gradient, state in zip(self.parameters, gradients, self.states):
            gradient.asnumpy()  # waits until it has been computed; on the CPU nothing is copied
            tensors = {name: (list(t.shape), t.dtype, t.data_ptr())
                       for name, t in {"grad": gradient, "param": parameter, **state}.items()}
            values, _keep = _values("apply_fused_adamw", tensors, options)
            if _library.velo_op_call(self.stream, b"apply_fused_adamw", values, ctypes.c_int64(len(values))) != 0:
                raise ValueError(_text(_library.velo_error_text))
