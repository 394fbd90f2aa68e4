"""Operators as functions of torch tensors, with gradients; all of them from the field table.

An operator gives one function of its name: tensors in field order, then attributes with the spec's
defaults, enumerators by name or number. What comes back is the required results; those that only
the gradient reads stay inside. Where the table names a gradient (gradient_of), it is one
autograd.Function: its tensors are forward inputs and results of the same name and one that is
neither, the gradient of the first result; `d<input>` of its results is the gradient of that input.
The gradient has no gradient of its own, and differentiating twice says so. An input of which the
gradient operator gives none is refused where it requires one; behind an operator that has no
gradient at all, differentiating is refused, as torch does. The functions make a layout that the
operator does not take contiguous first.
"""
import functools
import typing

import torch

from . import irregular
from .binding import VeloError, library, number_of, real_of
from .dispatcher import fullest, overload
from .plain import compiling

forward_ad = torch.autograd.forward_ad


def contiguous(tensor):
    return tensor.contiguous()


def unit(tensor):
    """The tensor itself when its last dimension has unit stride and no dimension stride 0, else a
    copy."""
    if tensor.is_contiguous(
    ) or tensor.dim() > 0 and tensor.stride(-1) == 1 and 0 not in tensor.stride():
        return tensor
    return tensor.contiguous()


def _ready(field):
    if field.kind == "tensors":
        return lambda tensors: None if tensors is None else list(tensors)
    return unit if field.strided else contiguous


class _Once(torch.autograd.Function):
    """Stands behind a gradient that someone may differentiate: refuses when asked to."""

    @staticmethod
    def forward(ctx, name, gradient, *_sources):
        ctx.name = name
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx, *_):
        raise VeloError(
            f"velo_{ctx.name} has a first derivative and no second: compute it with torch's own "
            f"operators, outside of "
            f"velo.torch.enable()")


class _Plan(typing.NamedTuple):
    """How the gradient of an operator is called. Places are indices; a tuple, because torch 2.9
    compiles nothing of a class of ours."""
    tensors: list         # of the tensors among the forward arguments
    arguments: int        # how many forward arguments there are
    without: list         # (place, name) of the tensors that get no gradient
    several: bool         # whether the forward call gives a tuple
    result: int           # of the forward result that the function returns
    saved_inputs: list    # of the forward arguments that the gradient always reads
    saved_results: list   # of the forward results that it always reads
    optional: list        # of the forward arguments that it reads where all gradients are wanted
    # of each of its attributes: a place among the forward arguments, or a function of them
    attributes: list
    ready: object         # what makes dy a layout that it takes
    # of each of its arguments: a place in saved inputs, saved results, dy, attributes; None: absent
    sources: list
    all_sources: list     # the same where all gradients are wanted: behind these, the optional ones
    gradients: list       # of each of its results: the forward argument it is the gradient of
    all_gradients: list   # of all its results
    more: list            # of those that are not always computed


def _incoming(forward, backward):
    names = {f.name for f in (*forward.arguments, *forward.all_results)}
    return [f for f in backward.reads if f.name not in names]


def _differentiable(field):
    return not {"f32", "bf16"}.isdisjoint(field.dtypes)


def _is_regular(forward, backward):
    """Whether the gradient follows from the names: it reads one gradient and the forward's tensors,
    and gives those of its inputs."""
    inputs = {f.name for f in forward.arguments}
    return (len(_incoming(forward, backward)) == 1 and
            all(f.name[1:] in inputs for f in backward.all_results) and
            all(f.name in inputs for f in backward.reads if f.optional) and
            all(f.name in inputs or (backward.name, f.name) in irregular.ATTRIBUTES
                for f in backward.attributes))


def _plan_of(forward, backward):
    inputs, results = [f.name for f in forward.arguments], [f.name for f in forward.all_results]
    incoming, = _incoming(forward, backward)
    # What the forward may lack, its gradient needs where it is there: a mask.
    absent = {f.name for f in forward.reads if f.optional}
    saved = [
        f.name for f in backward.reads
        if f is not incoming and (not f.optional or f.name in absent)
    ]
    saved_inputs, saved_results = (
        [names.index(name) for name in saved if name in names] for names in (inputs, results))
    optional = [
        inputs.index(f.name) for f in backward.reads if f.optional and f.name not in absent
    ]
    places = [inputs[i] for i in saved_inputs] + [results[i] for i in saved_results]
    places += [incoming.name] + [f.name for f in backward.attributes]
    sources = [places.index(f.name) if f.name in places else None for f in backward.arguments]
    more = iter(range(len(places), len(places) + len(optional)))
    gradients, all_gradients = (
        [inputs.index(f.name[1:]) for f in of] for of in (backward.results, backward.all_results))
    return _Plan(
        tensors=[inputs.index(f.name) for f in forward.reads],
        arguments=len(inputs),
        without=[(inputs.index(f.name), f.name)
                 for f in forward.reads
                 if _differentiable(f) and inputs.index(f.name) not in all_gradients],
        several=len(results) > 1,
        result=next(i for i, f in enumerate(forward.all_results) if not f.optional),
        saved_inputs=saved_inputs,
        saved_results=saved_results,
        optional=optional,
        attributes=[
            inputs.index(f.name) if f.name in inputs else irregular.ATTRIBUTES[backward.name,
                                                                               f.name]
            for f in backward.attributes
        ],
        ready=_ready(incoming),
        sources=sources,
        all_sources=[next(more) if at is None else at for at in sources],
        gradients=gradients,
        all_gradients=all_gradients,
        more=[at for at in all_gradients if at not in gradients])


def _derived(operator):
    """The autograd.Function of an operator whose gradient is another."""
    plan, run = _plan_of(operator, operator.gradient), fullest(operator)
    run_back, run_back_all = overload(operator.gradient.name), fullest(operator.gradient)

    class Derived(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *arguments):
            for at, name in plan.without:
                if ctx.needs_input_grad[at]:
                    raise VeloError(
                        f"velo_{operator.name}: args.{name}: expected a tensor that requires no "
                        f"gradient, which velo has none of, got one that does: pass "
                        f"{name}.detach()")
            results = run(*arguments)
            if not plan.several:
                results = (results,)
            ctx.all = any([ctx.needs_input_grad[at] for at in plan.more])
            more = [arguments[at] for at in plan.optional] if ctx.all else ()
            ctx.save_for_backward(*[arguments[i] for i in plan.saved_inputs],
                                  *[results[i] for i in plan.saved_results], *more)
            ctx.attributes = [
                arguments[at] if type(at) is int else at(*arguments) for at in plan.attributes
            ]
            ctx.dtypes = [
                arguments[at].dtype if at in plan.tensors and arguments[at] is not None else None
                for at in plan.all_gradients
            ]
            return results[plan.result]

        @staticmethod
        def backward(ctx, dy):
            saved = ctx.saved_tensors
            have = len(plan.saved_inputs) + len(plan.saved_results)
            known = (*saved[:have], plan.ready(dy), *ctx.attributes, *saved[have:])
            sources, back, goals = ((plan.all_sources, run_back_all, plan.all_gradients) if ctx.all
                                    else (plan.sources, run_back, plan.gradients))
            made = back(*[None if at is None else known[at] for at in sources])
            gradients = [None] * plan.arguments
            for at, gradient in zip(goals, made if len(goals) > 1 else (made,)):
                if ctx.needs_input_grad[at]:
                    dtype = ctx.dtypes[plan.all_gradients.index(at)]
                    gradients[at] = gradient if gradient.dtype == dtype else gradient.to(dtype)
            if torch.is_grad_enabled():
                gradients = [
                    g if g is None else _Once.apply(operator.name, g, dy, *saved) for g in gradients
                ]
            return tuple(gradients)

    Derived.__name__ = Derived.__qualname__ = "".join(
        part.title() for part in operator.name.split("_"))
    return Derived


class _Refused:
    """Stands for the autograd.Function of an operator whose gradient has a form of its own."""

    def __init__(self, operator):
        self.operator = operator

    def apply(self, *_arguments):
        raise VeloError(
            f"velo_{self.operator.name}: torch cannot follow it to its gradient; call it under "
            f"torch.no_grad(), and torch.ops.velo.{self.operator.gradient.name} for the gradient")


class _NoGradient:
    """Stands for the autograd.Function of an operator that has no gradient: whoever differentiates
    its results is refused, not given less than all gradients."""

    def __init__(self, operator):
        self.run = overload(operator.name)

        class Undifferentiated(torch.autograd.Function):
            @staticmethod
            def forward(_ctx, *arguments):
                return self.run(*arguments)

            @staticmethod
            def backward(_ctx, *_):
                raise VeloError(
                    f"velo_{operator.name}: velo has no gradient of it: call it under "
                    f"torch.no_grad(), or detach what it reads")

        self.function = Undifferentiated

    def apply(self, *arguments):
        """A compiler traces the backward of every function, whether it is asked for or not."""
        return self.run(*arguments) if compiling() else self.function.apply(*arguments)


def _gradient_of(operator):
    if operator.name in irregular.GRADIENTS:
        return irregular.GRADIENTS[operator.name]
    if not operator.gradient:
        writes = operator.mutable or not operator.results
        return None if writes else _NoGradient(operator)
    return (_derived(operator) if _is_regular(operator, operator.gradient)
            else _Refused(operator))


# ---- functions of the operators' names

def _attribute(operator, field):
    if field.kind == "f64":
        return lambda value: value if type(value) is float else real_of(operator, field, value)
    if field.kind == "ints":
        return lambda value: None if value is None else [
            number_of(operator, field, v) for v in value
        ]
    return lambda value: number_of(operator, field, value)


def _parameters(operator):
    """The function's parameters in Python. Behind an optional tensor that something required
    follows, all are keywords."""
    required = [f.kind in ("tensor", "tensors") and not f.optional for f in operator.arguments]
    parts = []
    for index, field in enumerate(operator.arguments):
        if field.optional and any(required[index:]) and "*" not in parts:
            parts.append("*")
        parts.append(field.name if required[index] else f"{field.name}={field.default!r}")
    return ", ".join(parts)


def _no_tensor(operator, name, value):
    raise TypeError(f"velo_{operator}: {name} is a torch.Tensor; got {value!r}"[:200])


_SOURCE = """
def {name}({parameters}):
    {ready}
    if grad_enabled() and ({requires}) or forward_ad._current_level >= 0:
        return apply({arguments})
    return run({arguments})
"""


def _function(operator):
    """The function of an operator, written out so that Python binds its arguments: a tenth of what
    a generic one would cost."""
    function = _gradient_of(operator)
    run = overload(operator.name)
    ready = [
        f"{f.name} = ready_{f.name}({f.name}) if isinstance({f.name}, Tensor) else " +
        (f"None if {f.name} is None else " if f.optional else "") + f"refuse({f.name!r}, {f.name})"
        for f in operator.reads
        if f not in operator.mutable and f.kind == "tensor"
    ]
    ready += [f"{f.name} = ready_{f.name}({f.name})" for f in operator.arguments
              if f.kind != "tensor"]
    requires = " or ".join(f"{f.name} is not None and {f.name}.requires_grad" if f.
                           optional else f"{f.name}.requires_grad"
                           for f in operator.reads
                           if _differentiable(f)) if function else ""
    scope = {f"ready_{f.name}": _ready(f) for f in operator.reads}
    scope.update({f"ready_{f.name}": _attribute(operator, f) for f in operator.attributes})
    scope.update(grad_enabled=torch.is_grad_enabled,
                 forward_ad=forward_ad,
                 run=run,
                 apply=function.apply if function else run,
                 Tensor=torch.Tensor,
                 refuse=functools.partial(_no_tensor, operator.name))
    source = _SOURCE.format(name=operator.name,
                            parameters=_parameters(operator),
                            ready="; ".join(ready),
                            requires=requires,
                            arguments=", ".join(f.name for f in operator.arguments))
    exec(compile(source, f"velo.torch.{operator.name}", "exec"), scope)
    scope[operator.name].__doc__ = "\n".join(operator.doc)
    scope[operator.name].__module__ = __name__.rpartition(".")[0]
    return irregular.SPELLINGS.get(operator.name, lambda derived: derived)(scope[operator.name])


FUNCTIONS = {
    name: _function(operator)
    for name, operator in library().operators.items()
    if not operator.gradient_of
}
