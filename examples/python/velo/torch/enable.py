"""enable(): lets velo do in a model what it does faster, and undoes itself."""
import math
import sys

import torch

from .binding import library
from .functions import FUNCTIONS
from .optimizer import AdamW

F = torch.nn.functional
cross_entropy, fusion_attention, matmul, rms_norm, swiglu, rotary_position_embedding = (
    FUNCTIONS[name] for name in ("cross_entropy", "fusion_attention", "matmul", "rms_norm", "swiglu", "rotary_position_embedding"))


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
