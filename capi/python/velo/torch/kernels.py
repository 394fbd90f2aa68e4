"""Operators of torch with a contract that velo keeps too: their CPU kernels in the dispatcher
become velo's, where it is worth it.

Autograd, functorch, torch.compile, autocast and DTensor see torch's own operator with torch's own
rules; only what computes is another. Attention is torch's flash attention for the CPU, forward and
backward: libvelo_adapters.so has its kernels (see velo_torch_attention), which also say what stays
torch's. Cross-entropy is composite, so velo takes its place above torch's differentiation; class
weights that are to be differentiated and small sizes go to what was there. The kernels are there
once in a process, while any enable() is in force.
"""
import ctypes
import math
import warnings

import torch

from . import costs
from .binding import VeloError, library
from .dispatcher import adapter
from .functions import FUNCTIONS
from .plain import plain
from .replacement import Shared

_MEAN = 1


def available():
    """Whether this torch lets a kernel be replaced and still be called (2.9)."""
    return hasattr(torch.library, "get_kernel")


def _registered(kernels):
    """An install() that puts kernels into the dispatcher: {(operator, key): function(original,
    shared)}."""

    def install(shared):
        home = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that kernels are overridden is meant
            for (name, key), kernel in kernels.items():
                original = torch.library.get_kernel("aten::" + name, key)
                home.impl(name, kernel(original, shared), key, with_keyset=True)
        return home._destroy

    return install


def _attention(shared):
    """An install() of attention, which the adapter computes: no Python is called."""
    if not hasattr(adapter, "velo_torch_attention"):
        raise VeloError(
            "velo's attention in torch needs torch 2.9 or later and libvelo_adapters.so of velo's "
            "own release"
        )
    library().check(adapter.velo_torch_attention(1))
    return lambda: library().check(adapter.velo_torch_attention(0))


def _attention_calls():
    calls = ctypes.c_uint64()
    if hasattr(adapter, "velo_torch_attention_calls"):
        adapter.velo_torch_attention_calls(ctypes.byref(calls))
    return calls.value


def _fits(weight, logits):
    """Whether these class weights, if any, are velo's to read."""
    return weight is None or (plain(weight) and weight.dtype == logits.dtype and
                              not weight.requires_grad and weight.shape == logits.shape[-1:])


def _cross_entropy(original, shared):
    operator, velo = torch.ops.aten.cross_entropy_loss.default, FUNCTIONS["cross_entropy"]

    def cross_entropy(keys,
                      logits,
                      target,
                      weight=None,
                      reduction=1,
                      ignore_index=-100,
                      label_smoothing=0.0):
        if (_fits(weight, logits) and logits.dim() == 2 and target.dim() == 1 and
                plain(logits) and type(target) is torch.Tensor and target.dtype == torch.int64 and
                target.device.type == "cpu" and len(target) == len(logits) > 0 and
                costs.cross_entropy(logits)):
            shared.called()
            weights = None if weight is None else weight.float()
            loss = velo(logits, target, ignore_index, reduction, weights,
                        label_smoothing).to(logits.dtype)
            if reduction == _MEAN and not loss and bool((target == ignore_index).all()):
                loss = loss + math.nan  # the mean of no targets: 0 / 0 in torch, 0 in velo
            return loss
        return operator.decompose(logits, target, weight, reduction, ignore_index, label_smoothing)

    return cross_entropy


attention = Shared(_attention, _attention_calls)
cross_entropy = Shared(_registered({("cross_entropy_loss", "AutogradCPU"): _cross_entropy}))
