"""What velo may take the place of torch for: plain tensors in a plain moment. Everything else is
left to torch.

Plain is a dense tensor of float32, bfloat16 or float16 on the CPU, of torch's own class (or a fake
of one, while torch traces); a plain moment is outside of torch.func's transforms, of forward-mode
differentiation and of torch.jit.trace, in a process that has not been forked from one that used
velo. Layers are plain when nothing but their forward would run: no hook, no forward of somebody
else's.
"""
import os

import torch
from torch.nn.modules import module as torch_module

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_CLASSES = {torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor)}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = [
    getattr(torch_module, f"_global{name}")
    for name in _HOOKS
    if hasattr(torch_module, f"_global{name}")
]
forward_ad = torch.autograd.forward_ad
_transformed = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)
_traced = getattr(torch._C, "_get_tracing_state", lambda: None)
_forked = False


def _after_fork():
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)
try:  # the classes of tensors that stand for plain ones while torch traces
    from torch._subclasses.fake_tensor import FakeTensor
    from torch._subclasses.functional_tensor import FunctionalTensor
    _CLASSES |= {FakeTensor, FunctionalTensor}
except ImportError:  # torch 1.13
    pass


def plain(first, *others):
    """Whether velo takes these, all of the first one's dtype; `why_not_plain` says why not, in the
    same order."""
    dtype = first.dtype
    if (_forked or _transformed() or forward_ad._current_level >= 0 or _traced() is not None
            or dtype not in DTYPES):
        return False
    for t in (first, *others):
        if not (type(t) in _CLASSES and t.dtype is dtype and
                (t.is_cpu or t.device.type == "cpu") and t.layout is torch.strided and
                not t.is_nested):
            return False
    return True


def why_not_plain(tensor):
    """What the tensor is that velo does not take it for: a text, "" where it is plain."""
    if _forked or _transformed() or forward_ad._current_level >= 0 or _traced() is not None:
        return ("seen in a process forked from one that used velo" if _forked else
                "seen inside of torch.func, of forward-mode differentiation or of a trace")
    if type(tensor) not in _CLASSES:
        return f"a {type(tensor).__name__}, and velo computes on tensors of torch's own class"
    if tensor.device.type == "meta":
        return "on the meta device: call enable() again when it has its values"
    if tensor.device.type != "cpu":
        return f"on {tensor.device}, and velo computes on the CPU"
    if tensor.layout is not torch.strided or tensor.is_nested:
        return "nested or sparse, and velo computes on dense tensors"
    if tensor.dtype not in DTYPES:
        return f"in {tensor.dtype}, and velo takes a module's place in float32 and 16 bits"
    return ""


def autocast():
    return torch.is_autocast_enabled("cpu") if hasattr(
        torch, "get_autocast_dtype") else torch.is_autocast_cpu_enabled()


# An exported program runs without velo, in any process, and is trained by torch's own gradients: it
# gets torch's operators.
compiling, exporting = (getattr(getattr(torch, "compiler", None), name, bool)
                        for name in ("is_compiling", "is_exporting"))


def own_forward(module):
    """Whether calling the module runs its class's forward, or velo's in its place."""
    forward = module.__dict__.get("forward")
    return forward is None or hasattr(forward, "by_velo") or getattr(forward, "__func__",
                                                                     None) is type(module).forward


def plain_linear(layer):
    """An nn.Linear that computes x W^T + b and nothing else: no LoRA in its place, no hook, no
    forward of another's."""
    return (type(layer) is torch.nn.Linear and own_forward(layer) and
            not any([getattr(layer, name, None) for name in _HOOKS]) and not any(_GLOBAL_HOOKS))
