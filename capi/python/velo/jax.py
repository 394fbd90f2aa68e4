"""velo for JAX: its operators as jax functions with gradients, under jit, by XLA's foreign function
interface.

    import velo.jax as velo
    y = velo.rms_norm(x, gamma)                             # differentiable, jit-able, on XLA's own
                                                            threads
    y, rstd = velo.rms_norm(x, gamma, outputs=("y", "rstd"))

Every operator of the library but those over lists of tensors is a function here, made from its
description (velo.spec): first the tensors it needs, then the optional ones, then its attributes,
with their defaults, by place or by name. It returns the outputs that the operator always has and
the tensors it was given to update, or those named by `outputs`. Where an operator adds to an output
(`accumulate`), the sum so far is given by the output's name. An attribute is part of the program
that is compiled; where the operator also takes it as a tensor (step and lr of apply_fused_adamw),
an array given for it is that tensor, and the program is compiled once.

Under vmap and over several devices independent axes, as the library describes them, stay apart:
rows are computed where they are, and sums over them are added up. Elsewhere vmap takes one entry at
a time, and tensors are gathered.

libvelo_adapters.so exports one handler an operator (velo_xla_<op>); registering them is all that is
needed, nothing is compiled and nothing is copied. What velo refuses is a ValueError when the call
is traced; what only the numbers show (an index out of range) is XLA's error when it runs. Both name
the operator.
"""
import functools
import inspect
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from velo import spec

_NAMES = {np.dtype(jnp.bfloat16): "bf16", np.dtype(bool): "bool",
          **{np.dtype(f"{kind}{bits}"): short + str(bits)
             for kind, short in (("int", "i"), ("uint", "u")) for bits in (8, 16, 32, 64)},
          **{np.dtype(f"float{bits}"): f"f{bits}" for bits in (16, 32, 64)}}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_TARGET = "velo_"  # and the operator: a handler's name in programs

# all, since a program that was exported calls them by name; older adapters lack the newest
for _op in spec.operators:
    if hasattr(spec.library, "velo_xla_" + _op):
        jax.ffi.register_ffi_target(_TARGET + _op,
                                    jax.ffi.pycapsule(getattr(spec.library, "velo_xla_" + _op)),
                                    platform="cpu",
                                    api_version=1)


# ---- one call of a handler

def _typed(value):
    if isinstance(value, tuple):
        return np.array(value, np.int64)
    return value if isinstance(
        value, str) else np.float64(value) if isinstance(value, float) else np.int64(value)


def _varying(x):
    """The mesh axes along which a value differs, inside shard_map."""
    aval = jax.typeof(x)
    return frozenset(
        aval.vma if hasattr(aval, "vma") else aval.mat.varying if hasattr(aval, "mat") else ())


def _struct(shape, dtype, axes):
    if not axes:
        return jax.ShapeDtypeStruct(shape, dtype)
    if not hasattr(jax.sharding, "ManualAxisType"):
        return jax.ShapeDtypeStruct(shape, dtype, vma=axes)
    return jax.ShapeDtypeStruct(shape,
                                dtype,
                                manual_axis_type=jax.sharding.ManualAxisType(varying=axes),
                                sharding=NamedSharding(jax.sharding.get_abstract_mesh(),
                                                       PartitionSpec()))


class _Call:
    """One operator on tensors `inputs` for results `outputs`, both by name, with these attributes:
    called with the inputs, it gives a tuple of the outputs."""

    def __init__(self, name, inputs, outputs, attributes):
        self.op, self.inputs, self.outputs, self.attributes = spec.operators[
            name], inputs, outputs, dict(attributes)
        self.__name__ = "velo_" + name
        self.mapped = custom_vmap(self._on_devices)
        self.mapped.def_vmap(self._on_batch)
        self.placed = custom_partitioning(self._handler)
        self.placed.def_partition(self._partition, sharding_rule=self._sharding_rule)

    def __call__(self, *tensors):
        for name, tensor in zip(self.inputs, tensors):
            if not all(isinstance(size, (int, np.integer)) for size in tensor.shape):
                raise ValueError(
                    f"velo_{self.op.name}: args.{name}.shape: expected sizes that are numbers when "
                    f"the program is traced, got "
                    f"[{', '.join(map(str, tensor.shape))}]: export a program for each size")
        return self.mapped(*tensors)

    def _results(self, shapes, dtypes):
        made = self.op.infer(
            {
                name: (shape, _NAMES.get(np.dtype(dtype), str(dtype)))
                for name, shape, dtype in zip(self.inputs, shapes, dtypes)
            }, self.attributes)
        missing = [name for name in self.outputs if name not in made]
        if missing:
            raise ValueError(
                f"velo_{self.op.name}: expected outputs that these inputs have "
                f"({', '.join(made)}), got {missing[0]}"
            )
        return [made[name] for name in self.outputs]

    def _handler(self, *tensors):
        results = self._results([t.shape for t in tensors], [t.dtype for t in tensors])
        varying = frozenset().union(*map(_varying, tensors))
        structs = tuple(_struct(shape, _DTYPES[dtype], varying) for shape, dtype in results)
        aliases = {
            self.inputs.index(name): self.outputs.index(name)
            for name in self.inputs
            if name in self.outputs
        }
        fields = ",".join(self.inputs) + "->" + ",".join(self.outputs)
        call = jax.ffi.ffi_call(_TARGET + self.op.name, structs, input_output_aliases=aliases)
        return call(*tensors,
                    fields=fields,
                    **{name: _typed(value) for name, value in self.attributes.items()})

    def _axes(self, in_shapes, out_shapes):
        axes = self.op.axes(
            self.attributes,
            {**dict(zip(self.outputs, out_shapes)), **dict(zip(self.inputs, in_shapes))})
        def of(names, shapes):
            return [axes.get(name, [None] * len(shape)) for name, shape in zip(names, shapes)]
        return of(self.inputs, in_shapes), of(self.outputs, out_shapes)

    # ---- over devices

    def _on_devices(self, *tensors):
        shapes = [t.shape for t in tensors]
        independent = self.op.axes(self.attributes, dict(zip(self.inputs, shapes)))
        if not any(axis for axes in independent.values() for axis in axes):
            return self._handler(*tensors)
        return self.placed(*tensors)

    def _sharding_rule(self, _mesh, in_types, out_types):
        """The axes as Shardy writes them: independent ones by name, each other dimension a factor
        of its own that stays whole."""
        ins, outs = self._axes([t.shape for t in in_types], [t.shape for t in out_types])
        whole = []

        def factor(axis):
            if axis is None:
                whole.append(f"w{len(whole)}")
            return axis or whole[-1]

        def side(all_axes):
            return ", ".join(" ".join(map(factor, axes)) for axes in all_axes)

        rule = f"{side(ins)} -> {side(outs)}"
        kept = {axis for axes in outs for axis in axes}
        summed = {axis for axes in ins for axis in axes if axis and axis not in kept}
        return rule, {
            "reduction_factors": tuple(sorted(summed)), "need_replication_factors": tuple(whole)
        }

    def _partition(self, mesh, arguments, results):
        """Independent axes lie as those of the first input that is spread along them; all else is
        whole on every device."""
        ins, outs = self._axes([a.shape for a in arguments], [r.shape for r in results])
        where = {}  # axis -> axes of the mesh
        for axes, argument in zip(ins, arguments):
            places = getattr(argument.sharding, "spec", PartitionSpec())
            for axis, place, size in zip(axes, tuple(places), argument.shape):
                parts = place if isinstance(place, tuple) else () if place is None else (place,)
                taken = {part for used in where.values() for part in used}
                even = size % max(1, int(np.prod([mesh.shape[part] for part in parts]))) == 0
                if axis and axis not in where and parts and even and not taken & set(parts):
                    where[axis] = parts

        def sharding(axes):
            return NamedSharding(mesh, PartitionSpec(*(where.get(axis) for axis in axes)))

        def on_part(*tensors):
            made = self._handler(*tensors)
            summed = [
                tuple(part
                      for axis, parts in where.items()
                      if axis not in axes
                      for part in parts)
                for axes in outs
            ]
            return tuple(jax.lax.psum(t, over) if over else t for t, over in zip(made, summed))

        return mesh, on_part, tuple(map(sharding, outs)), tuple(map(sharding, ins))

    # ---- under vmap

    def _on_batch(self, size, batched, *tensors):
        """The batch joins the rows where every output has rows of its own; otherwise one entry at a
        time."""
        shapes = [t.shape[1:] if b else t.shape for t, b in zip(tensors, batched)]
        out_shapes = [shape for shape, _ in self._results(shapes, [t.dtype for t in tensors])]
        ins, outs = self._axes(shapes, out_shapes)
        names = self.inputs + self.outputs
        groups = {
            self.op.leading_axis(self.attributes, set(names), name)
            for name, axes in zip(names, ins + outs)
            if any(axes)
        }
        apart = all(axes[:1] != [None] and axes for axes in outs) and all(
            any(axes) for axes, b in zip(ins, batched) if b)
        if not apart or len(groups) != 1 or None in groups:
            return self._one_by_one(batched, tensors)
        group = groups.pop()
        rank = max(len(shape) for shape in shapes + out_shapes)
        if group.endswith("...") and rank < 8:
            wide = [
                t if b or not any(axes) else jnp.broadcast_to(t, (size, *t.shape))
                for t, b, axes in zip(tensors, batched, ins)
            ]
            return self(*wide), (True,) * len(outs)
        if group.endswith("..."):
            return self._one_by_one(batched, tensors)
        return self._merged(size, batched, tensors, ins), (True,) * len(outs)

    def _merged(self, size, batched, tensors, ins):
        """The batch and the first dimension as one."""
        rows = max(
            t.shape[b] for t, b, axes in zip(tensors, batched, ins) if axes[:1] not in ([], [None]))
        shared = not any(b and any(axes) and axes[0] is None for b, axes in zip(batched, ins))

        def merge(t, b, axes):
            if not any(axes) or shared and axes[0] is None:  # whole, or one for all
                return t
            t = t if b else t[None]
            return jnp.broadcast_to(t,
                                    (size, rows, *t.shape[2:])).reshape(size * rows, *t.shape[2:])

        made = self(*(merge(t, b, axes) for t, b, axes in zip(tensors, batched, ins)))
        return tuple(t.reshape(size, rows, *t.shape[1:]) for t in made)

    def _one_by_one(self, batched, tensors):
        def entry(given):
            given = iter(given)
            return self(*(next(given) if b else t for t, b in zip(tensors, batched)))
        made = jax.lax.map(entry, [t for t, b in zip(tensors, batched) if b])
        return made, (True,) * len(self.outputs)


@functools.lru_cache(maxsize=1024)
def _call_of(name, inputs, outputs, attributes):
    return _Call(name, inputs, outputs, attributes)


# ---- gradients

def _call(name, outputs, tensors, attributes):
    """A differentiable operator on tensors by name, to the outputs by name."""
    attributes = spec.operators[name].attributes(attributes)
    made = _function_of(name, tuple(tensors), tuple(outputs),
                        tuple(attributes.items())).run(*tensors.values())
    return dict(zip(outputs, made))


def _add_gradient(_tensors, dy, _attributes, _wanted):
    return {"a": dy["y"], "b": dy["y"]}


def _cast_gradient(tensors, dy, _attributes, _wanted):
    return {
        "x":
            _call("cast", ("y",), {"x": dy["y"]}, {"dtype": jnp.dtype(tensors["x"].dtype).name})
            ["y"]
    }


def _matmul_gradient(tensors, dy, attributes, wanted):
    a, b = tensors["a"], tensors.get("b")
    if b is None:
        raise TypeError("velo_matmul: expected b, got a pack: velo has no gradient through a pack")
    dc = dy["c"].astype(a.dtype)
    turned_a, turned_b = (attributes.get("transpose_" + name, 0) for name in "ab")
    flat_a, flat_dc = (t.reshape(-1, t.shape[-1]) for t in (a, dc))

    def product(a, b, **turned):
        return _call("matmul", ("c",), {"a": a, "b": b}, turned)["c"]

    made = {"c": dy["c"]}
    if "a" in wanted:
        made["a"] = product(b, dc, transpose_a=turned_b, transpose_b=1) if turned_a else product(
            dc, b, transpose_b=1 - turned_b)
    if "b" in wanted:
        made["b"] = (product(flat_dc, flat_a, transpose_a=1, transpose_b=turned_a) if turned_b
                     else product(flat_a, flat_dc, transpose_a=1 - turned_a))
    if "bias" in wanted:
        made["bias"] = dy["c"].reshape(-1, dy["c"].shape[-1]).astype(jnp.float32).sum(
            0)  # float32 of a float32 product
    return made


# Gradients that do not follow from `gradient_of`: functions from the inputs and the gradients of
# the outputs, by name, to the gradients of the inputs `wanted`.
_IRREGULAR = {"add": _add_gradient, "cast": _cast_gradient, "matmul": _matmul_gradient}


def _derived_gradient(tensors, dy, attributes, wanted, gradient):
    """By the operator whose `gradient_of` names this one; `tensors` has the forward inputs and
    outputs that it reads."""
    reads, writes = gradient.choose(wanted, tensors, dy)
    given = {}
    for name in reads:
        kind, of = gradient.sources[name]
        given[name] = dy[of] if kind == "cotangent" else tensors[of]
    shapes = {name: t.shape for name, t in tensors.items()}
    made = _call(gradient.op.name, writes, given, gradient.attributes(attributes, shapes))
    return {gradient.results[name]: t for name, t in made.items()}


@jax.tree_util.register_static
class _Shown:
    """What the backward pass knows when it is traced: by input, whether its gradient is wanted, its
    dtype, and the mesh axes along which it differs."""

    def __init__(self, wanted, dtypes, varying):
        self.wanted, self.dtypes, self.varying = wanted, dtypes, varying

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __hash__(self):
        return hash((self.wanted, tuple(self.dtypes.items()), tuple(self.varying.items())))


def _fitted(gradient, dtype, varying):
    """A gradient in the dtype of what it belongs to, and summed over the mesh axes along which that
    is one and the same."""
    over = tuple(_varying(gradient) - varying)
    return (jax.lax.psum(gradient, over) if over else gradient).astype(dtype)


class _Function:
    """A differentiable operator on tensors by name, for fixed names, results and attributes."""

    def __init__(self, op, inputs, outputs, attributes):
        self.op, self.inputs, self.outputs, self.attributes = op, inputs, outputs, dict(attributes)
        # A gradient of several calls has second derivatives, and takes any dtypes.
        self.gradient = None if op.name in _IRREGULAR else op.gradient
        self.__name__ = "velo_" + op.name
        # The jit is inside: its cache of traces does not tell which inputs are perturbed, as
        # symbolic zeros do.
        self.run = jax.custom_vjp(jax.jit(self._value, inline=True))
        self.run.defvjp(self._forward, self._backward, symbolic_zeros=True)

    def _value(self, *tensors):
        """Of the results those that are asked for, though the operator writes all it must, and what
        it is given to update."""
        op, asked = self.op, self.outputs
        written = tuple(name for name in op.outputs
                        if name in asked or name in op.required_outputs or name in self.inputs)
        made = dict(
            zip(written,
                _call_of(op.name, self.inputs, written, tuple(self.attributes.items()))(*tensors)))
        return tuple(made[name] for name in asked)

    def _forward(self, *given):
        op, gradient = self.op, self.gradient
        if gradient is None and op.name not in _IRREGULAR:
            of = "velo has none of it"
            if op.gradient_of:
                of = f"it is the gradient of {op.gradient_of}, and velo has no second derivatives"
            raise TypeError(f"velo_{op.name}: expected no gradient to be asked of {op.name}: {of}")
        tensors = {name: g.value for name, g in zip(self.inputs, given)}
        wanted = frozenset(name for name, g in zip(self.inputs, given)
                           if g.perturbed and jnp.issubdtype(g.value.dtype, jnp.inexact))
        needs = () if gradient is None else gradient.needs
        made = _call(op.name, dict.fromkeys(self.outputs + needs), tensors, self.attributes)
        shown = _Shown(wanted, {name: t.dtype for name, t in tensors.items()},
                       {name: _varying(t) for name, t in tensors.items()})
        kept = {**{name: made[name] for name in needs}, **tensors}
        return tuple(made[name] for name in self.outputs), (kept, shown)

    def _backward(self, saved, cotangents):
        tensors, shown = saved
        gradient = self.gradient
        through = {of for kind, of in gradient.sources.values() if kind == "cotangent"
                  } if gradient else set(self.outputs)
        dy = {}
        for name, cotangent in zip(self.outputs, cotangents):
            zero = isinstance(cotangent, jax.custom_derivatives.SymbolicZero)
            if not zero and name not in through:
                raise TypeError(
                    f"velo_{self.op.name}: expected a gradient of {' and '.join(sorted(through))} "
                    f"alone, got one of {name}"
                )
            dy[name] = jnp.zeros(cotangent.shape, cotangent.dtype) if zero else cotangent
        if gradient is not None:
            made = _derived_gradient(tensors, dy, self.attributes, shown.wanted, gradient)
        else:
            made = _IRREGULAR[self.op.name](tensors, dy, self.attributes, shown.wanted)
        return tuple(
            _fitted(made[name], shown.dtypes[name], shown.varying[name]
                   ) if name in shown.wanted and name in made else None for name in self.inputs)


@functools.lru_cache(maxsize=1024)
def _function_of(name, inputs, outputs, attributes):
    return _Function(spec.operators[name], inputs, outputs, attributes)


# ---- the functions

def _signature(op):
    """The tensors that are needed, the optional ones, the attributes; then, by name alone, the sums
    so far and `outputs`."""
    kind, named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    fields = [op.fields[name] for name in op.inputs]
    parameters = [inspect.Parameter(f.name, kind) for f in fields if not f.optional]
    parameters += [inspect.Parameter(f.name, kind, default=None) for f in fields if f.optional]
    parameters += [
        inspect.Parameter(name, kind, default=op.fields[name].default)
        for name in op.attribute_names
    ]
    if "accumulate" in op.fields:
        parameters += [inspect.Parameter(name, named, default=None) for name in op.outputs]
    return inspect.Signature([*parameters, inspect.Parameter("outputs", named, default=None)])


def _as_array(op, name, value):
    if type(value) in (
            bool, int, float,
            complex):  # not numpy's; in a tensor's place it was meant for an attribute behind it
        raise TypeError(f"velo_{op.name}: args.{name}: expected an array, got {value!r}")
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError) as refused:
        raise TypeError(
            f"velo_{op.name}: args.{name}: expected an array, got {type(value).__name__}: {refused}"
        ) from None


def _converted(op, name, value):
    """An array for an attribute as the tensor in its place: in a dtype of that tensor, of the same
    kind; integers in one that holds them all."""
    dtypes = [_DTYPES[dtype] for dtype in op.fields[name + "_tensor"].dtypes]
    if value.dtype in dtypes:
        return value
    if jnp.issubdtype(dtypes[0], jnp.integer):
        fits = [
            d for d in dtypes if jnp.issubdtype(value.dtype, jnp.integer) and
            np.can_cast(value.dtype, d) and jax.dtypes.canonicalize_dtype(d) == d
        ]
    else:
        fits = dtypes if jnp.issubdtype(value.dtype, jnp.inexact) else []
    if not fits:
        raise TypeError(
            f"velo_{op.name}: args.{name}: expected {' or '.join(d.name for d in dtypes)}, got "
            f"{value.dtype}"
        )
    return value.astype(fits[0])


def _split(op, given):
    """Tensors as arrays, attributes as Python values. An array for an attribute is the tensor that
    the operator takes in its place."""
    tensors = {
        name: given[name] for name in (*op.inputs, *op.outputs) if given.get(name) is not None
    }
    attributes = {}
    for name in op.attribute_names:
        value = given[name]
        if not isinstance(value, jax.Array):
            is_dtype = op.fields[name].choices and isinstance(value, (type, np.dtype))
            attributes[name] = jnp.dtype(value).name if is_dtype else value
        elif name + "_tensor" not in op.inputs:
            raise TypeError(
                f"velo_{op.name}: args.{name}: expected a value that is known when the program is "
                f"traced, got an array"
            )
        elif name + "_tensor" in tensors:
            raise TypeError(
                f"velo_{op.name}: args.{name}: expected no array beside {name}_tensor, got one")
        else:
            tensors[name + "_tensor"] = _converted(op, name, value)
    arrays = {name: _as_array(op, name, tensors[name]) for name in op.fields if name in tensors}
    if any(name in arrays for name in op.outputs if name not in op.inputs):
        attributes["accumulate"] = 1
    elif attributes.get("accumulate"):
        raise TypeError(
            f"velo_{op.name}: args.accumulate: expected the sum so far, by the name of its output, "
            f"got none"
        )
    checked = op.attributes(attributes)
    for name in checked:
        if name + "_tensor" in op.inputs:
            _count_programs(op, name, checked[name])
    return arrays, checked


# (operator, attribute that may be an array): the Python values that came, None after the warning.
_values = {}


def _count_programs(op, name, value):
    """Warns once of an attribute that changes from call to call, for which there is a tensor: each
    value is a program of its own. A count (step) changes in training alone; several rates may
    belong to groups of parameters."""
    seen = _values.setdefault((op.name, name), set())
    if seen is None:
        return
    seen.add(value)
    if len(seen) > (8 if isinstance(value, float) else 2):
        _values[op.name, name] = None
        warnings.warn(
            f"velo_{op.name}: args.{name}: each Python number is compiled as a program of its own, "
            f"and {len(seen)} have come; "
            f"an array ({name}=jnp.asarray({name})) is one program for all",
            stacklevel=4)


def _outputs(op, asked, tensors):
    always = tuple(name for name in op.outputs if name in op.required_outputs or name in tensors)
    names = always if asked is None else (
        asked,) if isinstance(asked, str) or not hasattr(asked, "__iter__") else tuple(asked)
    for name in names:
        if name not in op.outputs:
            raise TypeError(
                f"velo_{op.name}: outputs: expected names of {', '.join(op.outputs)}, got {name!r}")
    return names


def _make(op):
    signature = _signature(op)

    def function(*args, **kwargs):
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as refused:
            raise TypeError(f"velo_{op.name}: expected {op.name}{signature}: {refused}") from None
        bound.apply_defaults()
        tensors, attributes = _split(op, bound.arguments)
        outputs = _outputs(op, bound.arguments["outputs"], tensors)
        made = _function_of(op.name, tuple(tensors), outputs,
                            tuple(attributes.items())).run(*tensors.values())
        single = len(outputs) == 1 and not isinstance(bound.arguments["outputs"], (tuple, list))
        return made[0] if single else made

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = "\n".join([*op.doc, "", *(f"{f.name}: {f.doc}" for f in op.fields.values())])
    function.__signature__ = signature
    return function


def _tokens_apart(cross_entropy):
    """Mean and sum are taken by jax over the losses of tokens, which lie where their logits do;
    mean is 0 where no target counts."""
    @functools.wraps(cross_entropy)
    def function(logits, targets, class_weights=None, ignore_index=-100, reduction="mean",
                 label_smoothing=0.0, **options):
        if reduction not in ("mean", "sum") or options or class_weights is not None:
            return cross_entropy(logits, targets, class_weights, ignore_index, reduction,
                                 label_smoothing, **options)
        total = cross_entropy(logits, targets, None, ignore_index, "none", label_smoothing).sum()
        if reduction == "sum":
            return total
        return total / jnp.maximum((jnp.asarray(targets) != ignore_index).sum(), 1)
    return function


for _op in spec.operators.values():
    if not _op.takes_lists:
        globals()[_op.name] = _make(_op)
cross_entropy = _tokens_apart(cross_entropy)  # noqa: F821
