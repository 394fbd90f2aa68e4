"""Modules of a model whose forward velo takes over: norms, gated MLPs, activations, linear layers.

Names say only what a module may be. What it is, numbers say: a trial copy, its parameters other
than they are, computes the same as velo's function of it, in training and in evaluation, for large
inputs and for ones so small that the epsilon decides. Modules of one kind are tried once. A module
that is none of these, or whose forward somebody else has replaced, is left, and the reason is
reported. Where torch traces (compiling()), no size decides: a comparison would bind the trace to
one side of it.
"""
import copy
import itertools
import math

import torch

from . import costs, gated, pointwise
from .functions import FUNCTIONS
from .plain import autocast, compiling, exporting, own_forward, plain, plain_linear, why_not_plain

F = torch.nn.functional
rms_norm, layer_norm, matmul = (FUNCTIONS[name] for name in ("rms_norm", "layer_norm", "matmul"))
# elements of a module that are worth a copy to try; larger ones are tried as they are
_LARGEST_TRIAL = 1 << 24


_OF_TORCH = set(vars(torch.nn.Module())) | {"forward"}  # attributes that every module has


def kind_of(module):
    """What modules of one kind share, their layers too: class, text, types, every buffer, and every
    attribute, private ones too, be it a number or an object of both."""
    kind = [
        repr(module),
        str([(p.dtype, p.device) for p in module.parameters()]),
        str([id(b) for b in module.buffers()])
    ]
    for part in module.modules():
        own = {
            k: v if isinstance(v, (int, float, str, type(None))) else id(v)
            for k, v in vars(part).items()
            if k not in _OF_TORCH
        }
        kind += [type(part), str(sorted(own.items()))]
    return tuple(kind)


def numbers(*shape, dtype=torch.float32, scale=1.0, start=0):
    """The sines of whole numbers: the same each time, and torch's generator is not touched."""
    return torch.arange(float(math.prod(shape))).add(start).sin().mul(scale).view(shape).to(dtype)


def trial_of(module):
    """A copy with other parameters and buffers, all different; the module itself where that would
    be large."""
    if sum(p.numel() for p in module.parameters()) > _LARGEST_TRIAL:
        return module
    trial = copy.deepcopy(module)
    trial.__dict__.pop("forward", None)
    with torch.no_grad():
        for index, tensor in enumerate(itertools.chain(trial.parameters(), trial.buffers())):
            if tensor.is_floating_point():
                tensor.copy_(numbers(*tensor.shape, scale=0.7, start=17 * index + 3))
    return trial


def agree(trial, compute, inputs):
    """Whether compute(trial, x) is what the trial's class computes, in both modes."""
    modes = [(m, m.training) for m in trial.modules()]
    try:
        with torch.no_grad():
            return all(_is_close(compute(trial.train(mode), x), type(trial).forward(trial, x))
                       for mode in (True, False) for x in inputs)
    except Exception:  # whatever a stranger's code raises, it is not what was expected of it
        return False
    finally:
        for m, training in modes:
            m.training = training


def _is_close(got, want):
    if not isinstance(want, torch.Tensor) or got.shape != want.shape or got.dtype != want.dtype:
        return False
    bound = 1e-5 if want.dtype == torch.float32 else 1e-2
    return 0 < want.float().norm() and bool(
        (got.float() - want.float()).norm() <= bound * want.float().norm())


# ---- RMS norms

_GAINS = {
    "rms_norm": lambda weight: weight,
    "rms_norm with a gain of 1 + weight": lambda weight: 1.0 + weight.float()
}
_EPSILONS = ("variance_epsilon", "eps", "epsilon", "norm_eps")


def _norm_of(epsilon, gain):
    def compute(self, x):
        weight = self.weight
        if not (plain(x, weight) and x.dim() > 0 and x.shape[-1] == weight.shape[0]
                and (not exporting() if compiling() else costs.norm(x))):
            return None
        value = getattr(self, epsilon)
        return rms_norm(x, gain(weight), torch.finfo(x.dtype).eps if value is None else value)

    return compute


def norm(module):
    """(what, compute) of an RMS norm, or why there is none."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 1:
        return "no gain of one dimension"
    if not plain(weight):
        return f"its gain is {why_not_plain(weight)}"
    trial = trial_of(module)
    inputs = [
        numbers(*rows, len(weight), dtype=weight.dtype,
                scale=scale)  # of more ranks, for a norm of another dimension
        for rows, scale in (((3,), 1.0), ((3,), 1e-3), ((2, 3), 300.0), ((2, 3, 2), 1.0))
    ]
    for what, gain in _GAINS.items():
        for epsilon in [name for name in _EPSILONS if hasattr(module, name)]:
            compute = _norm_of(epsilon, gain)
            if agree(trial, compute, inputs):
                return what, compute
    return "an RMS norm of a kind of its own"


# ---- layer norms

def _layer_norm(smallest):
    def compute(self, x):
        weight, bias = self.weight, self.bias
        # A compiler fuses a norm with its neighbors; autocast has a rule for torch's own operator.
        if compiling() or x.numel() < smallest or autocast():
            return None
        if (x.shape[-1:] != self.normalized_shape or x.numel() == 0 or
                not plain(x, *(t for t in (weight, bias) if t is not None))):
            return None
        return layer_norm(x, weight, bias, self.eps)

    return compute


def centered_norm(module):
    """(what, compute) of a torch.nn.LayerNorm over one dimension, or why there is none."""
    if type(module) is not torch.nn.LayerNorm:
        return f"a LayerNorm of a kind of its own, {type(module).__name__}"
    if len(module.normalized_shape) != 1:
        return "it normalizes more than one dimension"
    why = next(filter(None, map(why_not_plain, module.parameters())), "")
    return f"its gain or bias is {why}" if why else ("layer_norm",
                                                     _layer_norm(costs.layer_norm_elements()))


# ---- gated MLPs

def _activation(module):
    return getattr(module, "act_fn", getattr(module, "activation_fn", None))


_FORMS = {
    "SiLU": "silu", "SiLUActivation": "silu", "GELUActivation": "gelu",
    "GELUTanh": "gelu by tanh", "PytorchGELUTanh": "gelu by tanh",
    "NewGELUActivation": "gelu by tanh", "FastGELUActivation": "gelu by tanh"
}


def _form_of(activation):
    """Which of gated.FORMS an activation is by its class, None where it is none."""
    if isinstance(activation, torch.nn.GELU):
        return "gelu by tanh" if activation.approximate == "tanh" else "gelu"
    if activation in (F.silu, F.gelu):
        return activation.__name__
    return _FORMS.get(type(activation).__name__)


def _two_products(smallest):
    def compute(self, x):
        if compiling() or x.numel() < smallest:
            return None
        gate, up, form = self.gate_proj, self.up_proj, _form_of(_activation(self))
        if autocast() or not (plain_linear(gate) and plain_linear(up) and gate.bias is None and
                              up.bias is None and form and gate.weight.shape == up.weight.shape and
                              plain(x, gate.weight, up.weight)):
            return None
        return self.down_proj(gated.product(x, gate.weight, up.weight, form))

    return compute


def _one_product(smallest):
    def compute(self, x):
        if (compiling() or x.numel() < smallest or _form_of(_activation(self)) != "silu" or
                not plain(x)):
            return None
        both = self.gate_up_proj(x)
        return self.down_proj(FUNCTIONS["swiglu"](both)) if plain(both) else None

    return compute


def is_gated(module):
    gates = hasattr(module,
                    "gate_up_proj") or hasattr(module, "gate_proj") and hasattr(module, "up_proj")
    return gates and hasattr(module, "down_proj")


def gated_mlp(module):
    form_name, together = _form_of(_activation(module)), hasattr(module, "gate_up_proj")
    if form_name is None or together and form_name != "silu":
        return (f"its activation is {type(_activation(module)).__name__}, and velo has SiLU" +
                ("" if together else " and GELU"))
    layers = [
        getattr(module, name)
        for name in (("gate_up_proj",) if together else ("gate_proj", "up_proj"))
    ]
    if not all(isinstance(layer, torch.nn.Linear) and layer.weight.dim() == 2 for layer in layers):
        return "its layers are no linear ones"
    why = next(filter(None, (why_not_plain(layer.weight) for layer in layers)), "")
    if why:
        return f"a weight of its layers is {why}"
    operator = "swiglu" if form_name == "silu" else "geglu"
    form, what = (_one_product, operator) if together else (
        _two_products, f"gate and up into one buffer, {operator}")
    weight = layers[0].weight
    inner = weight.shape[0] // (2 if together else 1)
    if agree(trial_of(module), _always(form(0)),
             [numbers(5, weight.shape[1], dtype=weight.dtype, scale=0.3)]):
        return what, form(costs.gated_elements() * weight.shape[1] // max(inner, 1))
    return "a gated MLP of a kind of its own"


def _always(compute):
    """compute, where leaving it to torch is no answer."""
    def must(self, x):
        result = compute(self, x)
        if result is None:
            raise NotImplementedError
        return result

    return must


# ---- activations by themselves

def _applied(function, smallest):
    def compute(self, x):
        if (compiling() or x.numel() < smallest or getattr(self, "inplace", False) or
                not x.is_contiguous() or autocast() or not plain(x)):
            return None
        return function(x)

    return compute


def activation(module):
    """(what, compute) of an activation without parameters, or why there is none."""
    inputs = [numbers(4, 64, scale=scale) for scale in (1.0, 6.0, 40.0)]
    for what, function in pointwise.FUNCTIONS.items():
        if agree(trial_of(module), _always(_applied(function, 0)), inputs):
            return what, _applied(function, costs.activation_elements(what))
    if agree(trial_of(module), lambda _, x: F.gelu(x), inputs):
        return "torch's own gelu by the error function is as fast"
    return f"velo has no {type(module).__name__}"


# ---- linear layers

def _product(smallest):
    def compute(self, x):
        if compiling() or x.numel() < smallest:  # in decoding this is all that velo adds
            return None
        weight, bias = self.weight, self.bias
        if not costs.linear(x, weight) or autocast() or not plain(
                x, *((weight,) if bias is None else (weight, bias))):
            return None
        return matmul(x, weight, bias, transpose_b=True)

    return compute


def linear(module):
    if not plain(module.weight):
        return f"its weight is {why_not_plain(module.weight)}"
    if module.weight.dtype != torch.float32:
        return "torch's own products of 16 bits are as fast"
    if not costs.could_pay_linear(module.weight):
        return "too small for velo's product to be worth a call"
    return "matmul for large float32 products", _product(
        costs.linear_elements(*module.weight.shape))


# ---- what a module is taken for

def _named(*words):
    return lambda module: any(word in type(module).__name__ for word in words)


KINDS = (  # (how it is recognized, what replaces it or why not); the first that fits decides
    (lambda m: type(m).__name__.endswith("RMSNorm"),
     norm), (is_gated, gated_mlp), (lambda m: type(m) is torch.nn.Linear, linear),
    (lambda m: isinstance(m, torch.nn.Linear),
     lambda m: f"a Linear of a kind of its own, {type(m).__name__}"),
    (lambda m: isinstance(m, torch.nn.LayerNorm), centered_norm),
    (_named("Norm"), lambda m: f"velo has no {type(m).__name__}"),
    (lambda m: isinstance(m, torch.nn.Embedding), lambda m: "Embedding: a copy of rows either way"),
    (_named("GELU", "SiLU", "Swish"), activation),
    (_named("MLP", "FeedForward"),
     lambda m: "an MLP without a gate, or of a kind of its own: its linear layers are looked at"),
)


def _decided(decide, module):
    try:
        return decide(module)
    # a stranger's module that cannot be copied: it keeps a result of its own, a lock, a file
    except Exception as error:
        return f"it cannot be tried: {type(error).__name__}: {error}".split("\n")[0][:160]


def replace(done, name, module, tried):
    """Replaces the module's forward or says why not. tried: {kind: outcome}, so that a model's
    layers are tried once, and the ids of modules that need no trial."""
    decide = next((decide for fits, decide in KINDS if fits(module)), None)
    if decide is None:
        return
    if not own_forward(module):
        done.leave(name, "its forward has been replaced by somebody else")
    elif getattr(getattr(module.__dict__.get("forward"), "by_velo", None), "active", False):
        done.leave(name, "replaced already, by an earlier enable()")
    elif decide is linear and done.level == 0:
        done.leave(name, "velo's product is a plain loop at level 0")
    elif id(module) not in tried:
        kind = kind_of(module)
        outcome = tried[kind] = tried[kind] if kind in tried else _decided(decide, module)
        if isinstance(outcome, str):
            done.leave(name, outcome)
        else:
            done.forward(module, name, *outcome)
            if decide is gated_mlp:  # whose activation does not run for itself
                tried[id(_activation(module))] = outcome
