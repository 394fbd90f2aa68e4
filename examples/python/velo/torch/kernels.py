"""Operators of torch with a contract that velo keeps too: their CPU kernels in the dispatcher become velo's, where it is worth it.

Autograd, functorch, torch.compile, autocast and DTensor see torch's own operator with torch's own rules; only what computes is
another. Attention is torch's flash attention for the CPU, forward and backward: velo's row statistics are its log-sum-exp.
Cross-entropy is composite, so velo takes its place above torch's differentiation. What a kernel does not take (a mask, dropout,
broadcast keys, heads above 512, small sizes) goes to the kernel that was there. The kernels are there once in a process, while any
enable() is in force.
"""
import math
import warnings

import torch

from . import costs
from .dispatcher import overload
from .functions import FUNCTIONS, unit
from .plain import plain
from .replacement import Shared

_FLASH = "_scaled_dot_product_flash_attention_for_cpu"
_BNSD, _FULL, _CAUSAL, _MEAN = 1, 0, 2, 1
_attention, _attention_backward = overload("fusion_attention", "full"), overload("fusion_attention_backward")


def available():
    """Whether this torch lets a kernel be replaced and still be called (2.9)."""
    return hasattr(torch.library, "get_kernel") and hasattr(torch.ops.aten, _FLASH)


def _registered(kernels):
    """An install() that puts kernels into the dispatcher: {(operator, key): function(original, shared)}."""

    def install(shared):
        home = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that kernels are overridden is meant
            for (name, key), kernel in kernels.items():
                original = torch.library.get_kernel("aten::" + name, key)
                home.impl(name, kernel(original, shared), key, with_keyset=True)
        return home._destroy

    return install


def _fits(query, key, value, dropout_p, attn_mask):
    """Four dimensions of one batch, as many value features as key features, as torch's kernel has them; heads may be shared."""
    return (attn_mask is None and dropout_p == 0 and query.dim() == key.dim() == value.dim() == 4 and costs.attention(query, key)
            and plain(query, key, value) and query.shape[0] == key.shape[0] and key.shape == value.shape
            and query.shape[3] == key.shape[3] <= 512 and query.shape[1] % max(key.shape[1], 1) == 0
            and 0 not in query.shape and 0 not in key.shape)


def _flash(original, shared):
    def attention(keys, query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
        if not _fits(query, key, value, dropout_p, attn_mask):
            return original.call_boxed(keys, query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)
        shared.called()
        scale = query.shape[3] ** -0.5 if scale is None else scale
        out, top, total = _attention(unit(query), unit(key), unit(value), _BNSD, query.shape[1], scale,
                                     _CAUSAL if is_causal else _FULL)
        return out, top.add_(total.log_())

    return attention


def _flash_backward(original, shared):
    def attention_backward(keys, dy, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None):
        if not (_fits(query, key, value, dropout_p, attn_mask) and plain(dy, out)):
            return original.call_boxed(keys, dy, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask=attn_mask,
                                       scale=scale)
        scale = query.shape[3] ** -0.5 if scale is None else scale
        top = logsumexp.contiguous()
        return _attention_backward(unit(query), unit(key), unit(value), unit(dy), top, torch.ones_like(top), unit(out), _BNSD,
                                   query.shape[1], scale, _CAUSAL if is_causal else _FULL)

    return attention_backward


def _cross_entropy(original, shared):
    operator, velo = torch.ops.aten.cross_entropy_loss.default, FUNCTIONS["cross_entropy"]

    def cross_entropy(keys, logits, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
        if (weight is None and label_smoothing == 0 and logits.dim() == 2 and target.dim() == 1 and plain(logits)
                and type(target) is torch.Tensor and target.dtype == torch.int64 and target.device.type == "cpu"
                and len(target) == len(logits) > 0 and costs.cross_entropy(logits)):
            shared.called()
            loss = velo(logits, target, ignore_index, reduction).to(logits.dtype)
            if reduction == _MEAN and not loss and bool((target == ignore_index).all()):
                loss = loss + math.nan  # the mean of no targets: 0 / 0 in torch, 0 in velo
            return loss
        return operator.decompose(logits, target, weight, reduction, ignore_index, label_smoothing)

    return cross_entropy


attention = Shared(_registered({(_FLASH, "CPU"): _flash, (_FLASH + "_backward", "CPU"): _flash_backward}))
cross_entropy = Shared(_registered({("cross_entropy_loss", "AutogradCPU"): _cross_entropy}))
