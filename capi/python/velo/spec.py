"""velo's operators as the library describes them: what a host's module needs to make its functions,
without a framework.

    from velo import spec
    op = spec.operators["rms_norm"]
    op.attributes({"epsilon": 1e-5})
        # checked, or a sentence that names operator and field
    op.infer({"x": ((4, 8), "f32"), "gamma": ((8,), "f32")}, {})
        # {"y": ((4, 8), "f32"), "rstd": ((4, 1), "f32")}
    op.gradient.sources
        # {"dy": ("cotangent", "y"), "x": ("input", "x"), ..}

Everything is read once from velo_describe, when this module is imported; an operator is named here
only where its gradient has something that does not follow from its fields. An inference is one call
of velo_op_infer. velo/_libraries.py says where the library is found.
"""
import ctypes
import json
import math

import velo.ctypes as v
from velo import _libraries

DTYPES = {
    "f32": (v.VELO_DTYPE_FLOAT, 32), "bf16": (v.VELO_DTYPE_BFLOAT, 16), "f64":
        (v.VELO_DTYPE_FLOAT, 64), "f16": (v.VELO_DTYPE_FLOAT, 16), "bool": (v.VELO_DTYPE_BOOL, 8),
    **{f"i{bits}": (v.VELO_DTYPE_INT, bits) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (v.VELO_DTYPE_UINT, bits) for bits in (8, 16, 32, 64)}
}
NAMES = {pair: name for name, pair in DTYPES.items()}
_MAX_RANK = 8

library = v.load(_libraries.path_of(_libraries.adapters()))


def context():
    """The adapters' own context, in which calls by name run."""
    handle = v.velo_context()
    library.velo_adapters_context(ctypes.byref(handle))
    return handle


def _is_flag(value):
    """Whether a value is True or False, Python's or numpy's."""
    return isinstance(
        value,
        bool) or type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")


class Field:
    """A field of an operator: a tensor that is read, written or both, or an attribute with its
    default, whose value `check` takes."""

    def __init__(self, entry, enums):
        self.name, self.kind, self.doc = entry["name"], entry["kind"], entry["doc"]
        self.optional, self.default, self.dtypes = entry.get(
            "optional", False), entry.get("default"), entry.get("dtypes", [])
        self.holds_tensors = self.kind in ("tensor", "tensors")
        self.reads = self.holds_tensors and entry["dir"] != "out"
        self.writes = self.holds_tensors and entry["dir"] != "in"
        self.choices = {value["name"]: value["value"] for value in enums[entry["enum"]]["values"]
                       } if "enum" in entry else {}
        self._check = {
            "enumeration": self._choice, "bool": self._flag, "i64": self._integer,
            "handle": self._integer, "f64": self._real, "ints": self._integers, "text": self._text
        }.get(self.kind)

    def check(self, value):
        """The value as a plain int, float, str or tuple of int; ValueError with what was expected
        and what came. True and False are for flags alone: in place of a number they were meant for
        another argument."""
        return self._check(value)

    def _refuse(self, expected, value):
        raise ValueError(f"args.{self.name}: expected {expected}, got {value!r}")

    def _integer(self, value, expected="an integer"):
        if not hasattr(value, "__index__") or isinstance(value, bool):
            self._refuse(expected, value)
        number = value.__index__()
        return number if -2**63 <= number < 2**63 else self._refuse(expected + " of 64 bits", value)

    def _flag(self, value):
        number = int(value) if _is_flag(value) else self._integer(value, "0 or 1")
        return number if number in (0, 1) else self._refuse("0 or 1", value)

    def _choice(self, value):
        expected = "one of " + ", ".join(f'"{name}"' for name in self.choices)
        if isinstance(value, str):
            return value if value in self.choices else self._refuse(expected, value)
        number = self._integer(value, expected)
        names = [name for name, known in self.choices.items() if known == number]
        return names[0] if names else self._refuse(expected, value)

    def _real(self, value):
        if _is_flag(value) or isinstance(
                value,
            (str, bytes)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
            self._refuse("a number", value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        return number if math.isfinite(number) else self._refuse("a finite number", value)

    def _integers(self, value):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            self._refuse("a list of integers", value)
        return tuple(self._integer(item, "a list of integers") for item in value)

    def _text(self, value):
        return value if isinstance(value, str) else self._refuse("a text", value)


class Operator:
    """One operator, its fields by name in the spec's order, and what follows from them.

    inputs: the tensors that a host without in-place operators passes in; outputs: those it gets
    back. A tensor that is read only to be added to (under `accumulate`) is an output, and an input
    where its old value is given. gradient: how its gradient is called, or None. takes_lists: some
    field is a list of tensors, which hosts of arrays leave to one call a tensor.
    """

    def __init__(self, entry, enums):
        self.name, self.doc, self.examples = entry["name"], entry["doc"], entry.get("examples", [])
        self.fields = {field["name"]: Field(field, enums) for field in entry["fields"]}
        self.error_bound, self.gradient_of, self.gradient = entry["error_bound"], entry.get(
            "gradient_of"), None
        fields = self.fields.values()
        self.takes_lists = any(f.kind == "tensors" for f in fields)
        self.inputs = [
            f.name for f in fields if f.reads and not (f.writes and "accumulate" in self.fields)
        ]
        self.outputs = [f.name for f in fields if f.writes]
        self.required_outputs = tuple(
            name for name in self.outputs if not self.fields[name].optional)
        self.attribute_names = [f.name for f in fields if not f.holds_tensors]
        self.rows = entry.get("rows", [])

    def attributes(self, given):
        """The attributes of a call, checked; those left out, None or equal to their default are not
        in the result."""
        checked = {}
        for name, value in given.items():
            if name not in self.attribute_names:
                known = ", ".join(self.attribute_names) or "no attributes"
                raise TypeError(f"velo_{self.name}: expected {known}, got {name}")
            if value is None:
                continue
            try:
                value = self.fields[name].check(value)
            except ValueError as refused:
                raise ValueError(f"velo_{self.name}: {refused}") from None
            if value != self.fields[name].default:
                checked[name] = value
        return checked

    def _rule(self, attributes, names):
        """{tensor: its axes} of the rule that fits a call with these attributes and tensors, {}
        where none does."""
        for rule in self.rows:
            where = rule.get("where", {}).items()
            if all(
                    attributes.get(name, self.fields[name].default) in values
                    for name, values in where) and names <= rule["axes"].keys():
                return {name: rule["axes"][name].split() for name in names}
        return {}

    def axes(self, attributes, shapes):
        """The independent axes of a call on tensors and results of these shapes: {tensor: the name
        of each of its dimensions, None where it is taken whole or stands for all}, {} where no axis
        is independent."""
        patterns = self._rule(attributes, shapes.keys())
        lengths = _group_lengths(patterns, {name: len(shape) for name, shape in shapes.items()})
        if any(sum(lengths.get(axis, 1) for axis in pattern) != len(shapes[name])
               for name, pattern in patterns.items()):
            return {}  # a bias that broadcasts: the rule is one of other ranks
        named = {}
        for name, pattern in patterns.items():
            axes = [
                axis.rstrip(".?") + str(i) for axis in pattern for i in range(lengths.get(axis, 1))
            ]
            shared = [axis.endswith("?") for axis in pattern for _ in range(lengths.get(axis, 1))]
            named[name] = [None if axis[0].isupper() or lone and size == 1 else axis
                           for axis, lone, size in zip(axes, shared, shapes[name])]
        return named

    def leading_axis(self, attributes, names, name):
        """The first of a tensor's axes as it is described, "r..." or "b"; None where it is taken
        whole."""
        axes = self._rule(attributes, names).get(name)
        return axes[0].rstrip("?") if axes and axes[0][0].islower() else None

    def values(self, tensors, attributes):
        """Named values for velo_op_call and velo_op_infer, and what must outlive them. tensors:
        {field: (shape, dtype, address)}."""
        values, keep = [], []

        def put(name, kind, **union):
            values.append(
                v.velo_named_value(name.encode(),
                                   v.velo_value(kind, 0,
                                                type(v.velo_value().as_)(**union))))

        for name, (shape, dtype, address) in tensors.items():
            view, sizes = self.view(name, shape, dtype, address)
            keep += (view, sizes)
            put(name, v.VELO_VALUE_TENSOR, tensor=ctypes.pointer(view))
        for name, value in attributes.items():
            kind = self.fields[name].kind
            if kind == "f64":
                put(name, v.VELO_VALUE_FLOAT, f=value)
            elif kind == "ints":
                items = (ctypes.c_int64 * max(len(value), 1))(*value)
                keep.append(v.velo_ints(items, len(value)))
                put(name, v.VELO_VALUE_INTS, ints=ctypes.pointer(keep[-1]))
            elif kind == "handle":
                put(name, v.VELO_VALUE_HANDLE, p=value % 2**64)
            elif isinstance(value, str):
                keep.append(value.encode())
                put(name, v.VELO_VALUE_STRING, s=keep[-1])
            else:
                put(name, v.VELO_VALUE_INT, i=value)
        return (v.velo_named_value * max(len(values), 1))(*values), len(values), keep

    def view(self, name, shape, dtype, address=None):
        """A tensor as velo sees it, and the memory of its shape."""
        if dtype not in DTYPES:
            known = [one for one in self.fields[name].dtypes if one in DTYPES]
            expected = " or ".join(known) or "a dtype velo knows"
            raise ValueError(
                f"velo_{self.name}: args.{name}.dtype: expected {expected}, got {dtype}")
        if len(shape) > _MAX_RANK:
            raise ValueError(
                f"velo_{self.name}: args.{name}.ndim: expected 0 to {_MAX_RANK} dimensions, got "
                f"{len(shape)}"
            )
        sizes = (ctypes.c_int64 * _MAX_RANK)(*shape)
        return v.velo_tensor(data=address,
                             device=v.velo_device(v.VELO_DEVICE_CPU, 0),
                             ndim=len(shape),
                             dtype=v.velo_dtype(*DTYPES[dtype], 1),
                             shape=sizes), sizes

    def infer(self, tensors, attributes):
        """{output: (shape, dtype)} of a call on tensors {field: (shape, dtype)} with checked
        attributes, or velo's refusal."""
        unplaced = {name: (*given, None) for name, given in tensors.items()}
        values, count, _keep = self.values(unplaced, attributes)
        shapes, made = (v.velo_shape * len(self.outputs))(), ctypes.c_int64()
        shapes[0].struct_size = ctypes.sizeof(v.velo_shape)
        if library.velo_op_infer(context(), self.name.encode(), values, count, shapes, len(shapes),
                                 ctypes.byref(made)) != 0:
            raise ValueError(
                _libraries.text_of(library.velo_error_text).replace("velo_op_infer:",
                                                                    f"velo_{self.name}:", 1))
        return {
            s.name.decode(): (tuple(s.sizes[:s.ndim]), NAMES[s.dtype.code, s.dtype.bits])
            for s in shapes[:made.value]
        }


def _group_lengths(patterns, ranks):
    """How many dimensions each group of axes ("r...") has, given the ranks of the tensors: the one
    that is unknown in a tensor is what its rank leaves."""
    lengths = {}
    for _ in patterns:
        for name, pattern in patterns.items():
            groups = [axis for axis in pattern if axis.endswith("...")]
            unknown = [axis for axis in groups if axis not in lengths]
            if len(unknown) == 1:
                known = sum(lengths.get(axis, 0) for axis in groups)
                lengths[unknown[0]] = ranks[name] - (len(pattern) - len(groups)) - known
    return lengths


# Attributes that a gradient has and its operator has not, from the shapes of the operator's inputs.
_OWN_ATTRIBUTES = {
    "embedding_backward": lambda shapes: {"rows": shapes["table"][0]},
    "matmul_swiglu_backward": lambda shapes: {},  # dweight in the dtype of the weight
    "moe_token_unpermute_backward": lambda shapes: {"num_out_tokens": shapes["permuted"][0]},
    "rms_norm_matmul_backward": lambda shapes: {},  # likewise
    "topk_router_backward": lambda shapes: {"total_tokens": shapes["logits"][0]},
    "unpad_rope_backward": lambda shapes: {"upstream": 0},
    "unpad_seqlen_backward": lambda shapes: {"max_seq_len": shapes["x"][1]},
    "vocab_parallel_embedding_backward": lambda shapes: {"rows": shapes["weight"][0]}
}


class Gradient:
    """How the gradient of `forward` is called: by the operator `op`, whose inputs come from
    `sources`: {field: ("input" or "output" or "cotangent", the forward operator's field)};
    `results` names the forward input that each output is the gradient of, and `needs` the
    forward outputs among the sources. An optional source is read wherever the forward call had it,
    a mask, or made what it is the gradient of; or it serves optional results and such gradients
    alone, where the forward call always has it."""

    def __init__(self, forward, op):
        self.forward, self.op, self.sources = forward, op, {}
        for name in op.inputs:
            if name in forward.inputs:
                self.sources[name] = ("input", name)
            elif name in forward.outputs:
                self.sources[name] = ("output", name)
            elif name == "dy" or name[0] == "d" and name[1:] in forward.outputs:
                self.sources[name] = ("cotangent", forward.outputs[0] if name == "dy" else name[1:])
            else:
                raise TypeError(
                    f"velo_{op.name}: {name} is neither a tensor of {forward.name} nor the "
                    f"gradient of one"
                )
        self.results = {name: name[1:] for name in op.outputs if name[1:] in forward.inputs}
        self.needs = tuple(name for kind, name in self.sources.values() if kind == "output")
        self._shared = [name for name in op.attribute_names if name in forward.fields]
        self.own = [
            name for name in op.attribute_names
            if name not in forward.fields and name != "accumulate"
        ]

    def own_attributes(self, shapes):
        """The values of `own`, by the shapes of the forward call's inputs by name."""
        return _OWN_ATTRIBUTES[self.op.name](shapes) if self.own else {}

    def attributes(self, given, shapes):
        """Those of a call from those of the forward call, and the shapes of its inputs by name."""
        return self.op.attributes({
            **{name: given[name] for name in self._shared if name in given},
            **self.own_attributes(shapes)
        })

    def choose(self, wanted, given, made):
        """The tensors to read and to write for the gradients of the forward inputs `wanted`, of a
        call that had the inputs `given` and made the outputs `made`."""
        def optional(name):
            return self.op.fields[name].optional

        def is_incoming(name):
            kind, of = self.sources[name]
            return kind == "cotangent" and optional(name) and of in made

        def is_read(name):
            kind, of = self.sources[name]
            if kind == "input" and self.forward.fields[of].optional:
                return of in given
            if kind == "cotangent" and optional(name):
                return is_incoming(name)
            return more or through_more or not optional(name)

        through_more = any(map(is_incoming, self.sources))
        more = any(optional(name) and result in wanted for name, result in self.results.items())
        return ([name for name in self.sources if is_read(name)], [
            name for name, result in self.results.items()
            if not optional(name) or more and result in given
        ])


def _read():
    size = ctypes.c_uint64()
    library.velo_describe(None, 0, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.velo_describe(text, size, None)
    document = json.loads(text.value)
    enums = {enum["name"]: enum for enum in document["enums"]}
    made = {entry["name"]: Operator(entry, enums) for entry in document["operators"]}
    for op in made.values():
        if op.gradient_of is not None:
            made[op.gradient_of].gradient = Gradient(made[op.gradient_of], op)
    return made


operators = _read()
