"""velo for PyTorch: libvelo.so by ctypes, its operators as torch operators with gradients, and one line that speeds up a model.

    import velo.torch
    velo.torch.enable(model)            # replaces what velo does faster; print() the result to see what, and what not
    optimizer = velo.torch.AdamW(model.parameters(), lr=1e-3)

Nothing is compiled and nothing is copied: a torch tensor becomes a velo_tensor over the same memory. The library describes
itself (velo_describe), so this file holds no list of structs or fields. From bottom to top: the library, operators as functions,
gradients, the optimizer, and enable(), which undoes itself. Works with torch 1.13 and later; with torch 2 every operator is
registered with a fake implementation from velo_op_infer, so torch.compile(fullgraph=True) traces through.
velo/_libraries.py says where the library is found.
"""
import ctypes
import json
import math
import os
import sys
import threading

import torch

from velo import _libraries

F = torch.nn.functional
_DTYPES = {torch.float32: (2, 32), torch.bfloat16: (4, 16), torch.float64: (2, 64), torch.float16: (2, 16),
           torch.int32: (0, 32), torch.int64: (0, 64), torch.uint8: (1, 8), torch.bool: (6, 8)}
_FROM_DTYPE = {pair: dtype for dtype, pair in _DTYPES.items()}


# ---- the library

class _Dtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):  # velo_tensor, DLPack's DLTensor
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("dtype", _Dtype),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


class _Ints(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("count", ctypes.c_int64)]


class _Value(ctypes.Structure):  # velo_named_value
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int32), ("reserved", ctypes.c_int32), ("word", ctypes.c_uint64)]


class _Shape(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("ndim", ctypes.c_int32), ("dtype", _Dtype), ("reserved", ctypes.c_uint32),
                ("sizes", ctypes.c_int64 * 8), ("name", ctypes.c_char * 32)]


class _Allocator(ctypes.Structure):
    ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p,
                                ctypes.c_void_p)
    DEALLOCATE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("user", ctypes.c_void_p),
                ("allocate", ALLOCATE), ("deallocate", DEALLOCATE)]


class _ContextDesc(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("threads", ctypes.c_int32), ("device", ctypes.c_int32 * 2),
                ("allocator", ctypes.POINTER(_Allocator)), ("parallel_for", ctypes.c_void_p), ("log", ctypes.c_void_p),
                ("log_user", ctypes.c_void_p), ("config_json", ctypes.c_char_p)]


class VeloError(RuntimeError):
    """A refused or failed call. The text is velo's record: function, argument, what was expected and what came."""


class _Field:
    """A field of an operator's args struct: slot `at`, and how a Python value becomes its 8 bytes."""

    def __init__(self, index, description, enums):
        self.name, self.kind = description["name"], description["kind"]
        self.at, self.output = 8 + 8 * index, description.get("dir") in ("out", "inout")
        self.default = description.get("default")
        self.enumerators = enums.get(description.get("enum"), {})


class _Library:
    """libvelo.so, and a context with torch's memory for each number of threads that torch has been set to."""

    def __init__(self):
        self.c = _libraries.library()
        self.operators = self._describe()
        self.memory = {}  # address -> the torch tensor that owns it
        self._allocate = _Allocator.ALLOCATE(self._take)
        self._deallocate = _Allocator.DEALLOCATE(self._give_back)
        self._allocator = _Allocator(ctypes.sizeof(_Allocator), 0, None, self._allocate, self._deallocate)
        self.configured, self.opened, self.process = {}, {}, os.getpid()

    def context(self):
        """The context, and its inline stream, with as many threads as torch has now."""
        threads = torch.get_num_threads()
        return self.opened.get(threads) or self._open(threads)

    def _open(self, threads):
        if self.opened and os.getpid() != self.process:  # a forked child: velo refuses it the parent's, and says why
            return next(iter(self.opened.values()))
        desc = _ContextDesc(ctypes.sizeof(_ContextDesc), threads, (1, 0), ctypes.pointer(self._allocator), None, None, None, None)
        context, stream = ctypes.c_void_p(), ctypes.c_void_p()
        with _lock:
            if threads not in self.opened:
                self.check(self.c.velo_context_create(ctypes.byref(desc), ctypes.byref(context)))
                self.check(self.c.velo_context_stream(context, ctypes.byref(stream)))
                for key, value in self.configured.items():
                    self.check(self.c.velo_config_set(context, key, value))
                self.opened[threads] = context, stream
        return self.opened[threads]

    def _describe(self):
        size = ctypes.c_uint64()
        self.check(self.c.velo_describe(None, ctypes.c_uint64(0), ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        self.check(self.c.velo_describe(text, size, None))
        document = json.loads(text.value)
        enums = {e["name"]: {v["name"]: v["value"] for v in e["values"]} for e in document["enums"]}
        for operator in document["operators"]:
            for enum in operator.get("enums", []):
                enums[enum["name"]] = {v["name"]: v["value"] for v in enum["values"]}
        return {o["name"]: [_Field(i, f, enums) for i, f in enumerate(o["fields"])] for o in document["operators"]}

    def _take(self, _user, size, _alignment, _device, _stream):
        memory = torch.empty(size + 64, dtype=torch.uint8)  # torch aligns to 64 bytes; the slack is for builds that do not
        address = (memory.data_ptr() + 63) // 64 * 64
        self.memory[address] = memory
        return address

    def _give_back(self, _user, address, _size, _device, _stream):
        self.memory.pop(address, None)

    def check(self, status):
        if status != 0:
            text = ctypes.create_string_buffer(1024)
            self.c.velo_error_text(text, ctypes.c_uint64(len(text)), None)
            raise VeloError(text.value.decode())

    def configure(self, key, value):
        key, value = key.encode(), str(value).encode()
        self.context()
        with _lock:
            for context, _ in self.opened.values():
                self.check(self.c.velo_config_set(context, key, value))
            self.configured[key] = value


_lock = threading.Lock()
_loaded = None


def library():
    """The library, loaded on first use. After a fork the child is refused by velo itself, with a clear error."""
    global _loaded
    if _loaded is None:
        with _lock:
            _loaded = _loaded or _Library()
    return _loaded


def _view(tensor, keep):
    """A velo_tensor over a torch tensor's memory."""
    if tensor.device.type not in ("cpu", "meta"):
        raise VeloError(f"velo computes on the CPU; got a tensor on {tensor.device}")
    if tensor.dtype not in _DTYPES:
        raise VeloError(f"velo has no name for {tensor.dtype}")
    rank = tensor.dim()
    numbers = (ctypes.c_int64 * (2 * rank + 1))(*tensor.shape, *tensor.stride())
    address = ctypes.addressof(numbers)
    data = 0 if tensor.device.type == "meta" else tensor.data_ptr()
    code, bits = _DTYPES[tensor.dtype]
    view = _Tensor(data, (1, 0), rank, _Dtype(code, bits, 1), address, address + 8 * rank, 0)
    keep += (numbers, tensor, view)
    return ctypes.addressof(view)


def call(name, **values):
    """Runs an operator on torch tensors, outputs included: call("rms_norm", x=x, gamma=g, y=y, epsilon=1e-5)."""
    lib = library()
    fields, keep = lib.operators[name], []
    block = ctypes.create_string_buffer(8 + 8 * len(fields))
    ctypes.c_uint32.from_buffer(block).value = len(block)
    for field in fields:
        value = values.pop(field.name, field.default)
        if value is None:
            continue
        slot = ctypes.c_uint64.from_buffer(block, field.at)
        if field.kind == "tensor":
            slot.value = _view(value, keep)
        elif field.kind == "f64":
            ctypes.c_double.from_buffer(block, field.at).value = value
        elif field.kind == "ints":
            numbers = (ctypes.c_int64 * max(len(value), 1))(*value)
            ints = _Ints(ctypes.addressof(numbers), len(value))
            keep += (numbers, ints)
            slot.value = ctypes.addressof(ints)
        else:
            number = field.enumerators[value] if isinstance(value, str) else int(value)
            ctypes.c_int64.from_buffer(block, field.at).value = number
    if values:
        raise TypeError(f"{name} has no field {sorted(values)}")
    lib.check(getattr(lib.c, "velo_" + name)(lib.context()[1], block))


def infer(name, **values):
    """What the outputs must look like: {field: (shape, dtype)}. Touches no data, so fake and meta tensors serve."""
    lib = library()
    keep, named = [], []
    for field in lib.operators[name]:
        value = values.get(field.name)
        if value is None:
            continue
        if field.kind == "tensor":
            kind, word = 4, _view(value, keep)
        elif field.kind == "f64":
            kind, word = 2, int.from_bytes(bytes(ctypes.c_double(value)), "little")
        else:
            number = field.enumerators[value] if isinstance(value, str) else int(value)
            kind, word = 1, number & (2**64 - 1)
        named.append(_Value(field.name.encode(), kind, 0, word))
    shapes, count = (_Shape * 16)(), ctypes.c_int64()
    shapes[0].struct_size = ctypes.sizeof(_Shape)
    lib.check(lib.c.velo_op_infer(lib.context()[0], name.encode(), (_Value * max(len(named), 1))(*named),
                                  ctypes.c_int64(len(named)), shapes, ctypes.c_int64(16), ctypes.byref(count)))
    return {s.name.decode(): (tuple(s.sizes[: s.ndim]), _FROM_DTYPE[s.dtype.code, s.dtype.bits])
            for s in shapes[: count.value]}


# ---- operators as functions: outputs are made by torch from what infer says, then filled by velo

_torch_library = torch.library.Library("velo", "DEF")


def _made(name, values, outputs, like):
    shapes = infer(name, **values)
    return tuple(torch.empty(*shapes[output][:1], dtype=shapes[output][1], device=like.device) for output in outputs)


def _operator(schema, name, outputs):
    """Registers velo::<name> with torch: one function that makes the outputs and, unless the tensors are fake, fills them."""
    names = [part.split("=")[0].split()[-1] for part in schema.split(",")] if schema else []

    def values_of(arguments):
        return {key: value for key, value in zip(names, arguments) if value is not None}

    def fake(*arguments):
        values = values_of(arguments)
        meta = {k: v.to("meta") if isinstance(v, torch.Tensor) else v for k, v in values.items()}
        made = _made(name, meta, outputs, next(v for v in values.values() if isinstance(v, torch.Tensor)))
        return made if len(made) > 1 else made[0]

    def compute(*arguments):
        values = {k: v.detach() if isinstance(v, torch.Tensor) else v for k, v in values_of(arguments).items()}
        made = _made(name, values, outputs, next(v for v in values.values() if isinstance(v, torch.Tensor)))
        call(name, **values, **dict(zip(outputs, made)))
        return made if len(made) > 1 else made[0]

    result = "(" + ", ".join(["Tensor"] * len(outputs)) + ")" if len(outputs) > 1 else "Tensor"
    _torch_library.define(f"{name}({schema}) -> {result}")
    _torch_library.impl(name, compute, "CPU")
    _torch_library.impl(name, fake, "Meta")
    return getattr(torch.ops.velo, name)


_rms_norm = _operator("Tensor x, Tensor gamma, float epsilon", "rms_norm", ("y", "rstd"))
_rms_norm_backward = _operator("Tensor dy, Tensor x, Tensor gamma, Tensor rstd", "rms_norm_backward", ("dx", "dgamma"))
_swiglu = _operator("Tensor x, int dim", "swiglu", ("y",))
_swiglu_backward = _operator("Tensor dy, Tensor x, int dim", "swiglu_backward", ("dx",))
_rotary = _operator("Tensor x, Tensor cos, Tensor sin, int mode", "rotary_position_embedding", ("y",))
_rotary_backward = _operator("Tensor dy, Tensor cos, Tensor sin, int mode", "rotary_position_embedding_backward", ("dx",))
_attention = _operator("Tensor query, Tensor key, Tensor value, int layout, int head_num, float scale, int sparse_mode",
                       "fusion_attention", ("attention_out", "softmax_max", "softmax_sum"))
_attention_backward = _operator(
    "Tensor query, Tensor key, Tensor value, Tensor dy, Tensor softmax_max, Tensor softmax_sum, Tensor attention_out, "
    "int layout, int head_num, float scale, int sparse_mode", "fusion_attention_backward", ("dquery", "dkey", "dvalue"))
_embedding = _operator("Tensor ids, Tensor table", "embedding", ("y",))
_embedding_backward = _operator("Tensor ids, Tensor dy, int rows", "embedding_backward", ("dtable",))
_cross_entropy = _operator("Tensor logits, Tensor targets, int ignore_index, int reduction", "cross_entropy", ("loss", "lse"))
_cross_entropy_backward = _operator(
    "Tensor dloss, Tensor logits, Tensor targets, Tensor lse, int ignore_index, int reduction", "cross_entropy_backward",
    ("dlogits",))
_add = _operator("Tensor a, Tensor b", "add", ("y",))
_cast = _operator("Tensor x, int dtype", "cast", ("y",))
_matmul = _operator("Tensor a, Tensor b, Tensor? bias, bool transpose_a, bool transpose_b, int dtype", "matmul", ("c",))


# ---- gradients: one autograd.Function an operator

class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, epsilon):
        x, gamma = x.contiguous(), gamma.contiguous()
        y, rstd = _rms_norm(x, gamma, epsilon)
        ctx.save_for_backward(x, gamma, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, gamma, rstd = ctx.saved_tensors
        dx, dgamma = _rms_norm_backward(dy.contiguous(), x, gamma, rstd)
        return dx, dgamma.to(gamma.dtype), None


class _Swiglu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        x = x.contiguous()
        ctx.save_for_backward(x)
        ctx.dim = dim
        return _swiglu(x, dim)

    @staticmethod
    def backward(ctx, dy):
        return _swiglu_backward(dy.contiguous(), ctx.saved_tensors[0], ctx.dim), None


class _Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin, mode):
        ctx.save_for_backward(cos, sin)
        ctx.mode = mode
        return _rotary(x, cos, sin, mode)

    @staticmethod
    def backward(ctx, dy):
        cos, sin = ctx.saved_tensors
        return _rotary_backward(_unit(dy), cos, sin, ctx.mode), None, None, None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, layout, heads, scale, mode):
        out, top, total = _attention(query, key, value, layout, heads, scale, mode)
        ctx.save_for_backward(query, key, value, top, total, out)
        ctx.options = (layout, heads, scale, mode)
        return out

    @staticmethod
    def backward(ctx, dy):
        query, key, value, top, total, out = ctx.saved_tensors
        return (*_attention_backward(query, key, value, _unit(dy), top, total, out, *ctx.options), None, None, None, None)


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ids, table):
        ids = ids.contiguous()
        ctx.save_for_backward(ids)
        ctx.rows, ctx.dtype = table.shape[0], table.dtype
        return _embedding(ids, table.contiguous())

    @staticmethod
    def backward(ctx, dy):
        return None, _embedding_backward(ctx.saved_tensors[0], dy.contiguous(), ctx.rows).to(ctx.dtype)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, ignore_index, reduction):
        logits, targets = logits.contiguous(), targets.contiguous()
        loss, lse = _cross_entropy(logits, targets, ignore_index, reduction)
        ctx.save_for_backward(logits, targets, lse)
        ctx.options = (ignore_index, reduction)
        return loss

    @staticmethod
    def backward(ctx, dloss):
        logits, targets, lse = ctx.saved_tensors
        return _cross_entropy_backward(dloss.float().contiguous(), logits, targets, lse, *ctx.options), None, None, None


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, bias, transpose_b):
        ctx.save_for_backward(a, b)
        ctx.transpose_b, ctx.bias = transpose_b, None if bias is None else bias.dtype
        return _matmul(a, b, bias, False, transpose_b, 0)

    @staticmethod
    def backward(ctx, dy):
        a, b = ctx.saved_tensors
        dy = dy.contiguous()
        flat_a, flat_dy = a.reshape(-1, a.shape[-1]), dy.view(-1, dy.shape[-1])
        left, right = (flat_dy, flat_a) if ctx.transpose_b else (flat_a, flat_dy)
        needed = ctx.needs_input_grad
        da = _matmul(dy, b, None, False, not ctx.transpose_b, 0) if needed[0] else None
        db = _matmul(left, right, None, True, False, 0) if needed[1] else None
        dbias = flat_dy.sum(0, dtype=torch.float32).to(ctx.bias) if needed[2] else None
        return da, db, dbias, None


class _Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return _add(a.contiguous(), b.contiguous())

    @staticmethod
    def backward(ctx, dy):
        return dy, dy


class _Cast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dtype):
        ctx.dtype = 1 if x.dtype == torch.bfloat16 else 0
        return _cast(x.contiguous(), dtype)

    @staticmethod
    def backward(ctx, dy):
        return _cast(dy.contiguous(), ctx.dtype), None


def _unit(tensor):
    """The tensor itself when its last dimension has unit stride and no dimension stride 0, else a copy."""
    ok = tensor.stride(-1) == 1 and 0 not in tensor.stride()
    return tensor if ok else tensor.contiguous()


def rms_norm(x, gamma, epsilon=1e-6):
    return _RmsNorm.apply(x, gamma, epsilon)


def swiglu(x, dim=-1):
    return _Swiglu.apply(x, dim)


def rotary_position_embedding(x, cos, sin, interleaved=False):
    """x [.., .., .., D] with unit last stride; cos and sin broadcast against it. Tables get no gradient here."""
    return _Rotary.apply(_unit(x), cos.contiguous(), sin.contiguous(), int(interleaved))


def fusion_attention(query, key, value, causal=False, scale=None):
    """[B, S, N, D] tensors, strided if need be; key and value may have fewer heads. causal: row i sees keys j <= i."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    return _Attention.apply(_unit(query), _unit(key), _unit(value), 0, query.shape[2], scale, 2 if causal else 0)


def embedding(ids, table):
    return _Embedding.apply(ids, table)


def cross_entropy(logits, targets, ignore_index=-100, reduction="mean"):
    return _CrossEntropy.apply(logits, targets, ignore_index, ("none", "mean", "sum").index(reduction))


def matmul(a, b, bias=None, transpose_b=False):
    """a [.., m, k] times b [k, n], or b [n, k] with transpose_b (a linear layer's weight)."""
    return _Matmul.apply(a.contiguous(), _unit(b), bias, transpose_b)


def add(a, b):
    return _Add.apply(a, b)


def cast(x, dtype):
    return _Cast.apply(x, (torch.float32, torch.bfloat16).index(dtype))


# ---- the optimizer

class AdamW(torch.optim.Optimizer):
    """torch.optim.AdamW in one pass a parameter. Moments are float32; bfloat16 parameters keep a float32 master.

    max_norm > 0 clips the global gradient norm inside the same pass: the factor never touches the gradients.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, maximize=False,
                 max_norm=0.0):
        if lr < 0 or eps < 0 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"AdamW: lr and eps must be >= 0 and betas in [0, 1), got lr {lr}, eps {eps}, betas {betas}")
        self.max_norm = max_norm
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  "maximize": maximize})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        clip = self._clip() if self.max_norm > 0 else None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group, clip)
        return loss

    def _clip(self):
        total, norm, clip = torch.zeros((), dtype=torch.float64), torch.empty(()), torch.ones(())
        grads = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        for index, grad in enumerate(grads):
            call("global_norm", x=grad.contiguous(), sum_of_squares=total, norm=norm, clip=clip, max_norm=self.max_norm,
                 accumulate=index > 0)
        self.norm = norm
        return clip

    def _update(self, parameter, group, clip):
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = (torch.zeros_like(parameter, dtype=torch.float32) for _ in range(2))
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = torch.zeros_like(parameter, dtype=torch.float32)
            if parameter.dtype == torch.bfloat16:
                state["master"] = parameter.float()
        state["step"] += 1
        call("apply_fused_adamw", grad=parameter.grad.contiguous(), scale=clip, param=parameter, master=state.get("master"),
             m=state["exp_avg"], v=state["exp_avg_sq"], v_max=state.get("max_exp_avg_sq"), step=state["step"],
             lr=group["lr"], beta1=group["betas"][0], beta2=group["betas"][1], epsilon=group["eps"],
             weight_decay=group["weight_decay"], amsgrad=group["amsgrad"], maximize=group["maximize"])
        if hasattr(torch.autograd.graph, "increment_version"):
            torch.autograd.graph.increment_version(parameter)  # torch did not see the update happen


# ---- enable: the one line

def _served(*tensors):
    """velo takes these: on the CPU, float32 or bfloat16, of one dtype, with elements."""
    first = tensors[0]
    return all(t.device.type == "cpu" and t.dtype == first.dtype and t.numel() > 0 for t in tensors) and first.dtype in (
        torch.float32, torch.bfloat16)


def _autocast():
    return torch.is_autocast_enabled("cpu") if hasattr(torch, "get_autocast_dtype") else torch.is_autocast_cpu_enabled()


def _linear(x, weight, bias=None):
    """F.linear; in float32 velo's, where the product (of 16 million multiplications, 0.2 ms) is worth a call by ctypes."""
    fits = x.dtype == torch.float32 and _served(x, weight) and (bias is None or _served(x, bias)) and not _autocast()
    if fits and x.numel() * weight.shape[0] >= 1 << 24:
        return matmul(x, weight, bias, transpose_b=True)
    return F.linear(x, weight, bias)


def _attention_function(original):
    def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                     enable_gqa=False, **rest):
        fits = (attn_mask is None and dropout_p == 0 and not rest and query.dim() == 4 and _served(query, key, value)
                and (enable_gqa or query.shape[1] == key.shape[1]) and query.shape[1] % key.shape[1] == 0)
        if not fits:
            extra = {**rest, **({"scale": scale} if scale is not None else {}), **({"enable_gqa": True} if enable_gqa else {})}
            return original(query, key, value, attn_mask, dropout_p, is_causal, **extra)
        query, key, value = (t.transpose(1, 2) for t in (query, key, value))
        return fusion_attention(query, key, value, is_causal, scale).transpose(1, 2)

    return scaled_dot_product_attention


def _cross_entropy_function(original):
    def cross_entropy_or_original(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                                  reduction="mean", label_smoothing=0.0):
        fits = (weight is None and size_average is None and reduce is None and label_smoothing == 0 and input.dim() == 2
                and target.dim() == 1 and target.dtype in (torch.int32, torch.int64) and _served(input))
        if not fits:
            return original(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
        return cross_entropy(input, target, ignore_index, reduction).to(input.dtype)

    return cross_entropy_or_original


def _rotary_function(original):
    def apply_rotary_pos_emb(q, k, cos, sin, *rest, unsqueeze_dim=1, **options):
        fits = not rest and not options and unsqueeze_dim == 1 and q.dim() == 4 and cos.dim() == 3 and _served(q, k)
        fits = fits and cos.shape[-1] == q.shape[-1] == k.shape[-1] and cos.dtype in (q.dtype, torch.float32)
        if not fits or cos.requires_grad:
            return original(q, k, cos, sin, *rest, unsqueeze_dim=unsqueeze_dim, **options)
        cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
        return tuple(rotary_position_embedding(t.transpose(1, 2), cos, sin).transpose(1, 2) for t in (q, k))

    return apply_rotary_pos_emb


class Replacement:
    """What enable() did: .replaced and .left are lists of (where, what or why); disable() undoes it all."""

    def __init__(self):
        self.replaced, self.left, self._undo = [], [], []

    def _set(self, owner, name, value, where, what):
        before = owner.__dict__.get(name, self)

        def undo():
            if before is self:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        setattr(owner, name, value)
        self._undo.append(undo)
        self.replaced.append((where, what))

    def disable(self):
        while self._undo:
            self._undo.pop()()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.disable()

    def __str__(self):
        lines = ["velo replaced:"] + [f"  {where}: {what}" for where, what in self.replaced]
        return "\n".join(lines + ["and left:"] + [f"  {where}: {why}" for where, why in self.left])


def _agree(ours, theirs, dtype, *shapes):
    """Whether two functions compute the same of some numbers: names do not tell what a model's own code does."""
    numbers = [torch.arange(float(math.prod(shape))).add(i).sin().view(shape).to(dtype) for i, shape in enumerate(shapes)]
    try:
        with torch.no_grad():
            got, want = (torch.stack(tuple(function(*numbers))).float() for function in (ours, theirs))
    except Exception:  # whatever a stranger's code raises, it is not what was expected of it
        return False
    return bool((got - want).norm() <= (1e-4 if dtype == torch.float32 else 2e-2) * want.norm())


def _replace_norm(done, name, module):
    epsilon = getattr(module, "variance_epsilon", getattr(module, "eps", None)) or torch.finfo(torch.float32).eps
    original, weight = module.forward, module.weight
    if not (_served(weight) and weight.dim() == 1
            and _agree(lambda x: rms_norm(x, weight, epsilon), original, weight.dtype, (4, len(weight)))):
        done.left.append((name, "an RMSNorm of a kind of its own, or not on the CPU in float32 or bfloat16"))
        return

    def forward(x):
        return rms_norm(x, module.weight, epsilon) if _served(x, module.weight) else original(x)

    done._set(module, "forward", forward, name, "rms_norm")


def _replace_gated(done, name, module, linear):
    original, weight = module.forward, module.gate_proj.weight

    def gated(x):
        return module.down_proj(swiglu(linear(x, torch.cat((module.gate_proj.weight, module.up_proj.weight)))))

    plain = all(type(getattr(module, p)) is torch.nn.Linear and getattr(module, p).bias is None for p in ("gate_proj", "up_proj"))
    if not (plain and _served(weight) and _agree(gated, original, weight.dtype, (4, weight.shape[1]))):
        done.left.append((name, "a gated MLP of a kind of its own, or not on the CPU in float32 or bfloat16"))
        return
    done._set(module, "forward", lambda x: gated(x) if _served(x, module.gate_proj.weight) else original(x), name,
              "gate and up in one product, swiglu")


def _replace_rotary(done, home):
    original = getattr(sys.modules[home], "apply_rotary_pos_emb", None)
    if original is None:
        return
    ours = _rotary_function(original)
    if _agree(ours, original, torch.float32, (1, 2, 3, 8), (1, 2, 3, 8), (1, 3, 8), (1, 3, 8)):
        done._set(sys.modules[home], "apply_rotary_pos_emb", ours, home, "rotary_position_embedding")
    else:
        done.left.append((home, "apply_rotary_pos_emb: of a kind of its own"))


def _replace_module(done, name, module, linear):
    activation = getattr(module, "act_fn", None)
    silu = isinstance(activation, torch.nn.SiLU) or type(activation).__name__ in ("SiLU", "SiLUActivation")
    if type(module).__name__.endswith("RMSNorm") and getattr(module, "weight", None) is not None:
        _replace_norm(done, name, module)
    elif silu and all(hasattr(module, part) for part in ("gate_proj", "up_proj", "down_proj")):
        _replace_gated(done, name, module, linear)
    elif isinstance(module, torch.nn.LayerNorm):
        done.left.append((name, "LayerNorm: this release of velo has no layer_norm"))
    elif type(module) is torch.nn.Linear and linear is not F.linear:
        done._set(module, "forward", lambda input: linear(input, module.weight, module.bias), name,
                  "matmul for large float32 products; torch's own bfloat16 ones are as fast")
    elif isinstance(module, torch.nn.Linear):
        done.left.append((name, "Linear: of a kind of its own, or at level 0, where velo's product is a plain loop"))
    elif isinstance(module, torch.nn.Embedding):
        done.left.append((name, "Embedding: a copy of rows either way"))


def enable(model=None, level=2, optimizer=True):
    """Lets velo do what it does faster: attention, cross-entropy and AdamW everywhere; norms, gated MLPs, rotary embedding
    and float32 linear layers in `model`. level: 0 velo's reference kernels, 1 fused kernels, 2 everything. Returns a
    Replacement."""
    if level not in (0, 1, 2):
        raise ValueError(f"enable: level must be 0, 1 or 2, got {level!r}")
    library().configure("level", level)
    done = Replacement()
    if hasattr(F, "scaled_dot_product_attention"):
        done._set(F, "scaled_dot_product_attention", _attention_function(F.scaled_dot_product_attention),
                  "torch.nn.functional.scaled_dot_product_attention",
                  "fusion_attention; with a mask tensor or dropout torch's own")
    else:
        done.left.append(("scaled_dot_product_attention", "this torch has none"))
    done._set(F, "cross_entropy", _cross_entropy_function(F.cross_entropy), "torch.nn.functional.cross_entropy",
              "cross_entropy; with class weights or label smoothing torch's own")
    if optimizer:
        done._set(torch.optim, "AdamW", AdamW, "torch.optim.AdamW", "apply_fused_adamw, for optimizers made from now on")
    if model is not None:
        for name, module in model.named_modules():
            _replace_module(done, name or type(model).__name__, module, _linear if level > 0 else F.linear)
        for home in sorted({type(module).__module__ for module in model.modules()}):
            _replace_rotary(done, home)
    return done
