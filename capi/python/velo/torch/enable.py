"""enable(): lets velo do what it does faster, in a model and in the process, and undoes itself."""
import numbers
import sys

import torch

from . import costs, kernels, modules, optimizer as optimizers
from .binding import VeloError
from .dispatcher import by_adapter, why_not
from .functions import FUNCTIONS
from .plain import compiling, exporting, plain
from .replacement import Entry, Replacement, Shared, attribute

_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_rotary_homes = {}  # name of a module -> what is shared by all models of that module
_rotate = FUNCTIONS["rotary_position_embedding"]


def _rotary_function(original, shared):
    """apply_rotary_pos_emb(q, k, cos, sin) of transformers' modules: heads in the second dimension,
    one table for both."""

    def apply_rotary_pos_emb(q, k, cos, sin, *rest, **options):
        fits = (shared.users and not rest and not options and plain(q, k, cos, sin) and
                q.dim() == k.dim() == 4 and cos.dim() == 3 and cos.shape == sin.shape and
                cos.shape[-1] == q.shape[-1] == k.shape[-1] and q.shape[2] == k.shape[2] and
                cos.shape[1] == q.shape[2] and cos.shape[0] in (1, q.shape[0]) and
                (not exporting() if compiling() else costs.rotary(q)))
        if not fits:
            return original(q, k, cos, sin, *rest, **options)
        for entry in shared.users:
            entry.called = True
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return _rotate(q, cos, sin), _rotate(k, cos, sin)

    return apply_rotary_pos_emb


def _replace_rotary(done, home):
    original = getattr(sys.modules.get(home), "apply_rotary_pos_emb", None)
    if original is None:
        return
    if home not in _rotary_homes:
        trial = Shared(None)
        trial.users.append(Entry(home, "trial"))
        sizes = ((2, 4, 3, 8), (2, 2, 3, 8), (2, 3, 8), (2, 3, 8))
        tensors = [modules.numbers(*size, start=100 * i) for i, size in enumerate(sizes)]
        try:
            got, want = (torch.cat([t.flatten()
                                    for t in f(*tensors)])
                         for f in (_rotary_function(None, trial), original))
            same = bool((got - want).norm() <= 1e-5 * want.norm())
        except Exception:  # whatever a stranger's code raises, it is not what was expected of it
            same = False
        if not same:
            done.leave(home, "its apply_rotary_pos_emb is of a kind of its own")
            return
        _rotary_homes[home] = Shared(
            attribute(sys.modules[home], "apply_rotary_pos_emb", _rotary_function))
    done.share(_rotary_homes[home], home, "rotary_position_embedding")


def _attention_left(done, name, module):
    """Attention is replaced in torch's dispatcher; what computes it by products of its own is
    left."""
    if "Attention" not in type(module).__name__:
        return
    way = getattr(getattr(module, "config", None), "_attn_implementation", "sdpa")
    if way != "sdpa":
        done.leave(
            name,
            f"attention computed by the model itself (attn_implementation {way!r}), not by torch's "
            f"operator"
        )


def enable(model=None, level=2, optimizer=True):
    """Lets velo do what it does faster: attention, cross-entropy and AdamW everywhere; norms, gated
    MLPs, activations, rotary embedding and float32 linear layers in `model`. level: 0 velo's
    reference kernels, 1 fused kernels, 2 everything. Returns a Replacement: print it to see what
    was replaced, what has not run, what was left and why. Call it, and disable(), while no other
    thread computes: torch's dispatcher gives its kernels no turn."""
    if isinstance(level, bool) or not isinstance(level, numbers.Integral) or level not in (0, 1, 2):
        raise ValueError(f"enable: level must be 0, 1 or 2, got {level!r}"[:200])
    if not (model is None or isinstance(model, torch.nn.Module)):
        raise TypeError(f"enable: model must be a torch.nn.Module or None, got {model!r}"[:200])
    if not isinstance(optimizer, bool):
        raise TypeError(f"enable: optimizer must be True or False, got {optimizer!r}"[:200])
    done = Replacement(level)
    try:
        _replace_in_process(done, optimizer)
        if model is not None:
            _replace_in_model(done, model)
    except BaseException:  # an interrupted one too: nobody has what would undo it
        done.disable()
        raise
    return done


def _replace_in_process(done, optimizer):
    if not by_adapter:
        done.leave("torch's dispatcher",
                   f"every call goes by ctypes and costs 100 microseconds: {why_not}")
    try:
        done.share(kernels.attention, _ATTENTION,
                   "fusion_attention; with dropout or few rows torch's own")
    except VeloError as why:
        done.leave(_ATTENTION, str(why))
    if kernels.available():
        done.share(kernels.cross_entropy, "torch.nn.functional.cross_entropy",
                   "cross_entropy; with few logits torch's own")
    else:
        done.leave("torch.nn.functional.cross_entropy",
                   "this torch does not let a kernel be replaced and still be called (2.9 does)")
    if optimizer:
        done.share(optimizers.adamw, "torch.optim.AdamW",
                   "apply_fused_adamw, for optimizers made from now on")


def _replace_in_model(done, model):
    tried = {}
    for name, module in model.named_modules():
        modules.replace(done, name or type(model).__name__, module, tried)
        _attention_left(done, name, module)
    for home in sorted({type(module).__module__ for module in model.modules()}):
        _replace_rotary(done, home)
