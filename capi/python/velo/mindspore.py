"""velo for MindSpore: its operators as cells with gradients, in PyNative and in graph mode, through
ops.Custom(.., "aot").

    import velo.mindspore as velo
    norm = velo.RmsNorm(epsilon=1e-6)
    y = norm(x, gamma)                          # differentiable; inside ms.jit too

Every operator of the library but those over lists of tensors is a cell here, made from its
description (velo.spec): RmsNorm of rms_norm. A cell is made with the operator's attributes, and
those of its gradient alone (rows of Embedding); by name it takes `tensors`, the inputs of its calls
(else those the operator needs), `outputs`, what they return (else what the operator always gives
and was given to update), and `gradients`, the inputs that get one (else all that can). A gradient
through an output that velo has none of (rstd, lse) is refused, and so is a second derivative. A
cell can be copied and pickled.

libvelo_adapters.so exports the functions that MindSpore launches; nothing is compiled. MindSpore's
AOT convention knows no attributes, so each operator binds its own to a slot (velo_ms_slot_bind)
when it is made and launches velo_ms_slot_NNN; equal ones share a slot, and there are 512. None is
freed, since a graph that MindSpore keeps may launch it still; the 129th is refused. Whatever velo
would refuse for its shapes and dtypes is refused when the graph is built, as a ValueError with
velo's sentence. velo/_libraries.py says where the library is found.
"""
import ctypes
import inspect
import json
import os
import tempfile

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from velo import _libraries, spec

_DTYPES = {
    "f32": ms.float32, "bf16": ms.bfloat16, "f64": ms.float64, "f16": ms.float16, "bool": ms.bool_,
    **{
        short + str(bits): getattr(ms, name + str(bits))
        for short, name in (("i", "int"), ("u", "uint"))
        for bits in (8, 16, 32, 64)
    }
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_path = os.path.realpath(_libraries.path_of(
    spec.library))  # what MindSpore takes; the same file is the same library with the same slots


def last_error():
    """The sentence of the latest failed launch, of which MindSpore's exception shows only the
    number."""
    return _libraries.text_of(spec.library.velo_adapters_last_error)


# ---- one operator

class Operator(ops.Custom):
    """One operator with its attributes bound: Operator("rms_norm", "x,gamma->y,rstd",
    epsilon=1e-5)(x, gamma) is (y, rstd). bprop: a function as MindSpore takes it, or a
    _Gradient."""

    def __init__(self, op, fields, bprop=None, **attributes):
        self._made_with = op, fields, bprop, attributes
        self._op, self._attributes = spec.operators[op], spec.operators[op].attributes(attributes)
        self._inputs, self._outputs = (side.split(",") for side in fields.split("->"))
        slot, document = ctypes.c_int32(), json.dumps({"fields": fields, **self._attributes})
        status = spec.library.velo_ms_slot_bind(-1, op.encode(), document.encode(),
                                                ctypes.byref(slot))
        if status != 0:
            full = status == spec.v.VELO_ERR_STATE
            hint = ": operators of equal attributes share one, and none is freed" if full else ""
            raise ValueError(f"velo_{op}: {last_error().partition(': ')[2]}{hint}")
        self._gradient = bprop if isinstance(bprop, _Gradient) else None
        super().__init__(f"{_path}:velo_ms_slot_{slot.value:03d}", lambda *_: None, lambda *_: None,
                         "aot",
                         self._gradient.function() if self._gradient else bprop)
        self._slot, self._inferred = slot, {}
        # Shapes come from velo_ms_slot_NNNInferShape, which a graph can ask for every size that
        # comes; dtypes from __infer__.
        self.add_prim_attr("cpp_infer_shape", True)
        self.add_prim_attr("multi_output", len(self._outputs) > 1)
        self.add_prim_attr("reg_op_name", "velo_" + op)

    def __reduce__(self):
        return _operator, self._made_with

    def __deepcopy__(self, _memo):
        return _operator(*self._made_with)

    def _described(self, tensors):
        """{field: (shape, dtype)} of what MindSpore says of the inputs: {"shape", "dtype", "value"}
        a tensor."""
        name, inputs = self._op.name, self._inputs
        if len(tensors) != len(inputs):
            raise ValueError(
                f"velo_{name}: expected {len(inputs)} tensors ({', '.join(inputs)}), got "
                f"{len(tensors)}"
            )
        described = {}
        for field, tensor in zip(inputs, tensors):
            if not hasattr(tensor["dtype"], "element_type"):
                raise ValueError(
                    f"velo_{name}: args.{field}: expected a tensor, got a value of "
                    f"{tensor['dtype']}"
                )
            if -2 in tensor["shape"]:
                raise ValueError(
                    f"velo_{name}: args.{field}: expected a tensor whose rank is known, got one of "
                    f"any rank"
                )
            dtype = tensor["dtype"].element_type()
            described[field] = (tuple(tensor["shape"]), _NAMES.get(dtype, str(dtype)))
        return described

    def __infer__(self, *tensors):  # PyNative asks at each call
        described = self._described(tensors)
        key = tuple(described.values())
        if key not in self._inferred:
            if len(self._inferred) == 256:
                self._inferred.clear()
            self._inferred[key] = self._infer(described)
        return self._inferred[key]

    def _infer(self, described):
        if self._gradient:
            self._gradient.check({name: shape for name, (shape, _) in described.items()})
        views, _sizes = zip(*(self._op.view(name, *given) for name, given in described.items()))
        made = (spec.v.velo_shape * len(self._outputs))()
        if spec.library.velo_ms_slot_infer(self._slot, (spec.v.velo_tensor * len(views))(*views),
                                           ctypes.c_int64(len(views)), made,
                                           ctypes.c_int64(len(made))) != 0:
            raise ValueError(f"velo_{self._op.name}: {last_error().partition(': ')[2]}")
        shapes, dtypes = [list(s.sizes[:s.ndim]) for s in made
                         ], [_DTYPES[spec.NAMES[s.dtype.code, s.dtype.bits]] for s in made]
        if [] in shapes:
            raise ValueError(
                f"velo_{self._op.name}: expected outputs of rank 1 or more, got a scalar: "
                f"MindSpore loses its gradient"
            )
        if len(shapes) == 1:
            return {"shape": shapes[0], "dtype": dtypes[0], "value": None}
        return {"shape": tuple(shapes), "dtype": tuple(dtypes), "value": None}


def _operator(op, fields, bprop, attributes):
    return Operator(op, fields, bprop, **attributes)


# ---- gradients: bprop of a primitive gets its inputs, its outputs and the outputs' gradients

_sources = tempfile.TemporaryDirectory(
    prefix="velo-mindspore-")  # graph mode reads a function's source from its file


def _function(name, parameters, lines, captured):
    """A function of these lines, with what they name besides the parameters."""
    path = os.path.join(_sources.name, f"{name}_{len(os.listdir(_sources.name))}.py")
    source = "\n".join([
        f"def make({', '.join(captured)}):", f"    def bprop({', '.join(parameters)}):",
        *("        " + line for line in lines), "    return bprop", ""
    ])
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    space = {"__name__": __name__, "ops": ops}
    exec(compile(source, path, "exec"), space)
    return space["make"](**captured)


def _derived(op, inputs, outputs, wanted, attributes):
    """The lines of a gradient by the operator whose `gradient_of` names this one."""
    gradient = op.gradient
    reads, writes = gradient.choose(wanted, inputs, outputs)
    if not set(wanted) & set(gradient.results.values()):
        return [f"return ({', '.join(f'ops.zeros_like({name})' for name in inputs)},)"], {}
    missing = [name for name in gradient.own if not attributes.get(name)]
    if missing:
        of = " and ".join(gradient.results.values())
        return _refused(
            f"velo_{op.name}: expected {missing[0]}, which the gradient of {of} needs, got none; "
            f"gradients=() makes a cell without"
        )
    single = len(outputs) == 1

    def source(name):
        kind, of = gradient.sources[name]
        if kind == "input":
            return of
        tensor = "out" if kind == "output" else "dout"
        return tensor if single else f"{tensor}[{outputs.index(of)}]"

    backward = Operator(
        gradient.op.name, f"{','.join(reads)}->{','.join(writes)}",
        _Gradient(gradient.op.name, reads), **{
            name: value for name, value in attributes.items() if name in gradient.op.attribute_names
        })
    made = {
        gradient.results[name]: "made" if len(writes) == 1 else f"made[{i}]"
        for i, name in enumerate(writes)
    }
    given = [
        f"{made[name]}.astype({name}.dtype)"
        if name in made and name in wanted else f"ops.zeros_like({name})" for name in inputs
    ]
    return [f"made = backward({', '.join(map(source, reads))})",
            f"return ({', '.join(given)},)"], {"backward": backward}


def _refused(text):
    return [f"raise TypeError({text!r})"], {}


def _add(_op, _inputs, _outputs, _wanted, _attributes):
    return ["return dout, dout"], {}


def _cast(_op, _inputs, _outputs, _wanted, _attributes):
    return ["return (dout.astype(x.dtype),)"], {}


def _matmul(_op, inputs, _outputs, wanted, attributes):
    if "b" not in inputs:
        return ["return (" + ", ".join(f"ops.zeros_like({name})" for name in inputs) + ",)"], {}
    turned_a, turned_b = attributes.get("transpose_a", 0), attributes.get("transpose_b", 0)

    def product(**turned):
        return Operator("matmul", "a,b->c", _Gradient("matmul", "ab"), **turned)

    operators = {
        "to_a":
            product(transpose_a=turned_b, transpose_b=1) if turned_a else product(transpose_b=1 -
                                                                                  turned_b),
        "to_b":
            product(transpose_a=1, transpose_b=turned_a) if turned_b else product(transpose_a=1 -
                                                                                  turned_a)
    }
    rows = [
        "flat_a, dc = a.reshape((-1, a.shape[-1])), dout.astype(a.dtype)",
        "flat_dc = dc.reshape((-1, dc.shape[-1]))",
        "exact_dc = dout.astype(single).reshape((-1, dout.shape[-1]))"
    ]
    made = {
        "a": "to_a(b, dc)" if turned_a else "to_a(dc, b)",
        "b": "to_b(flat_dc, flat_a)" if turned_b else "to_b(flat_a, flat_dc)",
        "bias": "exact_dc.sum(0).astype(bias.dtype)", "c": "dout"
    }
    given = [made[name] if name in wanted else f"ops.zeros_like({name})" for name in inputs]
    return [*rows, f"return ({', '.join(given)},)"], {**operators, "single": ms.float32}


# Gradients that do not follow from `gradient_of`.
_IRREGULAR = {"add": _add, "cast": _cast, "matmul": _matmul}


class _Gradient:
    """What a cell's bprop is made of, so that a copy of the cell can make it again: the operator's
    name, its tensors, the inputs that get a gradient, and attributes, those of the gradient alone
    among them. Without outputs it is that of an operator in a bprop, which has none."""

    def __init__(self, op, inputs, outputs=(), wanted=(), attributes=None):
        self.op, self.inputs, self.outputs = op, inputs, outputs
        self.wanted, self.attributes = wanted, attributes

    def function(self):
        op = spec.operators[self.op]
        of = op.gradient_of if self.outputs else op.gradient_of or op.name
        if of or op.gradient is None and op.name not in _IRREGULAR:
            of = (f"it is the gradient of {of}, and velo has no second derivatives"
                  if of else "velo has none of it")
            lines, captured = _refused(
                f"velo_{op.name}: expected no gradient to be asked of {op.name}: {of}")
        else:
            lines, captured = _IRREGULAR.get(op.name, _derived)(op, self.inputs, self.outputs,
                                                                self.wanted, self.attributes)
        return _function(op.name, (*self.inputs, "out", "dout"), lines, captured)

    def check(self, shapes):
        """The gradient's own attributes are given when the cell is made, and have to be what the
        shapes say."""
        gradient = spec.operators[self.op].gradient
        for name, size in gradient.own_attributes(shapes).items() if gradient and self.wanted else (
        ):
            given = self.attributes.get(name)
            if given and given != size:
                expected = f"{size}, as the tensors have" if size >= 0 else ("tensors whose size "
                                                                             "it "
                                                                             "is to be known when "
                                                                             "the graph is built")
                raise ValueError(f"velo_{self.op}: {name}: expected {expected}, got {given}")


class _NoGradient(nn.Cell):
    """What is given, through which no gradient goes."""

    def __init__(self, text):
        super().__init__()
        self.text = text

    def construct(self, x):
        return x

    def bprop(self, _x, _out, _dout):
        raise TypeError(self.text)


# ---- operators as cells

def _names(given, otherwise):
    if given is None:
        return tuple(otherwise)
    return tuple(given.split(",")) if isinstance(
        given, str) else tuple(given) if hasattr(given, "__iter__") else (given,)


class _Cell(nn.Cell):
    """An operator; its classes have `op`, and a signature of its attributes."""

    op = None

    def __init__(self, *args, **kwargs):
        super().__init__()
        op = self.op
        try:
            given = dict(type(self).__signature__.bind(*args, **kwargs).arguments)
        except TypeError as refused:
            raise TypeError(
                f"velo_{op.name}: expected {type(self).__name__}{type(self).__signature__}: "
                f"{refused}"
            ) from None
        asked = {name: given.pop(name, None) for name in ("tensors", "outputs", "gradients")}
        # A weight is optional where a pack may stand in its place.
        needed = () if "packed" in given or "packed" not in op.fields else ("b", "weight")
        inputs = _names(asked["tensors"], (name for name in op.inputs
                                           if name in needed or not op.fields[name].optional))
        self.check("tensors", inputs, op.inputs + op.outputs)
        outputs = _names(
            asked["outputs"],
            (name for name in op.outputs if name in op.required_outputs or name in inputs))
        self.check("outputs", outputs, op.outputs)
        needs = op.gradient.needs if op.gradient else ()
        written = tuple(
            dict.fromkeys((*outputs, *op.required_outputs,
                           *(name for name in inputs if name in op.outputs), *needs)))
        own = op.attributes(
            {name: value for name, value in given.items() if name in op.attribute_names})
        if any(name in inputs for name in op.outputs if name not in op.inputs):
            own.setdefault("accumulate", 1)
        wanted = _names(asked["gradients"], inputs)
        self.check("gradients", wanted, inputs)
        self.inputs, self.names, self.alone = inputs, outputs, len(written) == 1
        self.apart = self.without_gradient()
        fields = f"{','.join(inputs)}->{','.join(written)}"
        self.run = Operator(op.name, fields, _Gradient(op.name, inputs, written, wanted, given),
                            **own)

    def check(self, what, names, known):
        for name in names:
            if name not in known:
                raise ValueError(
                    f"velo_{self.op.name}: {what}: expected names of "
                    f"{', '.join(dict.fromkeys(known))}, got {name!r}"
                )

    def without_gradient(self):
        """A cell for each result, where there is one that a gradient may not go through; else
        None."""
        gradient = self.op.gradient
        through = {of for kind, of in gradient.sources.values() if kind == "cotangent"
                  } if gradient else self.names
        if set(self.names) <= set(through):
            return None
        text = (f"velo_{self.op.name}: expected a gradient of {' and '.join(sorted(through))} "
                f"alone, got one of ")
        return nn.CellList([
            nn.Identity() if name in through else
            _NoGradient(f"{text}{name}; where none is meant, ops.stop_gradient({name}) says so")
            for name in self.names
        ])

    def results(self, *tensors):
        """The outputs by `names`."""
        out = self.run(*tensors)
        if self.alone:
            return (out,)
        if self.apart is None:
            return out[: len(self.names)]
        made = ()
        for i in range(len(self.names)):
            made += (self.apart[i](out[i]),)
        return made

    def construct(self, *tensors):
        made = self.results(*tensors)
        return made[0] if len(self.names) == 1 else made


def _signature(op):
    """The attributes, those of the gradient alone, and the arguments given by name."""
    kind, named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    fields = [op.fields[name] for name in op.attribute_names]
    if op.gradient:
        fields += [op.gradient.op.fields[name] for name in op.gradient.own]
    return inspect.Signature([
        *(inspect.Parameter(f.name, kind, default=f.default) for f in fields),
        *(inspect.Parameter(name, named, default=None)
          for name in ("tensors", "outputs", "gradients"))
    ])


def _cell(op):
    name = "".join(part.capitalize() for part in op.name.split("_"))
    doc = "\n".join([*op.doc, "", *(f"{f.name}: {f.doc}" for f in op.fields.values())])
    return name, type(
        name, (_Cell,),
        {"op": op, "__signature__": _signature(op), "__doc__": doc, "__module__": __name__})


for _op in spec.operators.values():
    if not _op.takes_lists:
        globals().update([_cell(_op)])


class CrossEntropy(CrossEntropy):  # noqa: F821
    """velo gives a loss a token, MindSpore adds them up: in graph mode it takes a custom operator's
    output of rank 0 for a constant, whose gradient is nothing. The mean is 0 where no target
    counts."""

    def __init__(self, ignore_index=-100, reduction="mean", **options):
        self.reduction = self.op.attributes({"reduction": reduction}).get("reduction", "mean")
        super().__init__(ignore_index, "none", **options)
        self.ignored, self.targets_at = ignore_index, self.inputs.index("targets")
        weighted = "class_weights" in self.inputs
        self.weights_at = self.inputs.index("class_weights") if weighted else -1

    def construct(self, *tensors):
        made = ()
        for name, tensor in zip(self.names, self.results(*tensors)):
            made += (self.reduced(tensor, tensors) if name == "loss" else tensor,)
        return made[0] if len(self.names) == 1 else made

    def reduced(self, loss, tensors):
        if self.reduction == "none":
            return loss
        if self.reduction == "sum":
            return loss.sum()
        targets = tensors[self.targets_at]
        counted = (targets != self.ignored).astype(ms.float32)
        if self.weights_at >= 0:
            chosen = ops.stop_gradient(tensors[self.weights_at])
            counted = counted * ops.gather(chosen, targets * counted.astype(targets.dtype), 0)
        total = counted.sum()
        return loss.sum() / (total + (total == 0).astype(ms.float32))


# ---- the optimizer

class AdamW:
    """AdamW over parameters, two moments each: step(gradients), in the order of the parameters.
    Parameters of 16 bits keep a float32 master.

    A custom operator of MindSpore's cannot write into its inputs, so the step goes past ops.Custom:
    velo is given the tensors' own memory and updates it in place.
    """

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), epsilon=1e-8, weight_decay=0.0):
        self.lr, self.count, self.parameters = lr, 0, list(parameters)
        self.options = {
            "beta1": betas[0], "beta2": betas[1], "epsilon": epsilon, "weight_decay": weight_decay
        }
        self.states = [{name: ms.Tensor(np.zeros(p.shape, np.float32))
                        for name in ("m", "v")}
                       for p in self.parameters]
        for parameter, state in zip(self.parameters, self.states):
            if parameter.dtype in (ms.bfloat16, ms.float16):
                state["master"] = ms.Tensor(parameter.astype(ms.float32).asnumpy().copy())
        self.stream = spec.v.velo_stream()
        spec.library.velo_context_stream(spec.context(), ctypes.byref(self.stream))

    def step(self, gradients):
        gradients = [g.contiguous() for g in gradients
                    ]  # one of p.T is a view, whose strides velo would not see
        if [g.shape for g in gradients] != [p.shape for p in self.parameters]:
            raise ValueError(
                f"AdamW: expected gradients of shapes {[p.shape for p in self.parameters]}, "
                f"got {[g.shape for g in gradients]}")
        op = spec.operators["apply_fused_adamw"]
        attributes = op.attributes({"step": self.count + 1, "lr": self.lr, **self.options})
        self.count += 1
        for parameter, gradient, state in zip(self.parameters, gradients, self.states):
            gradient.asnumpy()  # waits until it has been computed; on the CPU nothing is copied
            tensors = {name: (t.shape, _NAMES.get(t.dtype, str(t.dtype)), t.data_ptr())
                       for name, t in {"grad": gradient, "param": parameter, **state}.items()}
            values, count, _keep = op.values(tensors, attributes)
            if spec.library.velo_op_call(self.stream, op.name.encode(), values, count) != 0:
                raise ValueError(_libraries.text_of(spec.library.velo_error_text))
