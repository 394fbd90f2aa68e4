"""Every operator in torch's dispatcher, namespace `velo`, by the rules of libvelo_adapters.so's
velo_torch_register.

velo::<op> is functional: what the operator reads and its attributes, in field order; torch makes
the required results in the shapes of velo_op_infer. velo::<op>.full gives all results, where there
are optional ones. velo::<op>.out takes every tensor from the caller. The adapter registers them
from C, at the cost of torch's own operators; where torch lacks the functions for that (it needs
2.9), or the adapter is missing, the same schemas are registered here over ctypes. Fakes come from
here in either case, since sizes may be symbols: torch.compile then compiles once for all of them.
"""
import ctypes
import warnings

import torch

import velo.ctypes as c
from velo import _libraries

from . import symbolic
from .binding import VeloError, call, library

_TYPES = {
    "i64": "int", "f64": "float", "bool": "bool", "enumeration": "int", "ints": "int[]",
    "text": "str", "handle": "int"
}
_owned = []  # torch.library.Library objects, which take their registrations with them


def _literal(field):
    if field.kind == "bool":
        return str(bool(field.initial))
    return repr(float(field.initial) if field.kind == "f64" else field.initial or 0)


def _schema(fields, mutable):
    """Arguments in torch's language. One that need not be given has a default where nothing
    required follows it."""
    parts, letters = [], iter("abcdefghijkl")
    held = ("tensor", "tensors")
    required = [f.kind in (*held, "ints") and not f.optional for f in fields]
    for index, field in enumerate(fields):
        listed = field.kind in ("ints", "text") and field.optional
        if field.kind in held:
            kind, initial = f"Tensor({next(letters)}!)" if field in mutable else "Tensor", "None"
            kind += "[]" if field.kind == "tensors" else ""
        else:
            kind, initial = _TYPES[field.kind], "None" if listed else _literal(field)
        optional = "?" if listed or field.kind in held and field.optional else ""
        parts.append(f"{kind}{optional} {field.name}" +
                     ("" if any(required[index:]) else f"={initial}"))
    return ", ".join(parts)


def overloads(operator):
    """{name behind the dot: results}; empty for the default one. What `out` fills comes from the
    caller."""
    forms = {"": operator.results, "out": []}
    return forms if operator.results == operator.all_results else {
        **forms, "full": operator.all_results
    }


def schema_of(operator, form):
    name = operator.name + ("." + form if form else "")
    if form == "out":
        written = [f for f in operator.fields if f.direction in ("out", "inout")]
        return f"{name}({_schema(operator.fields, written)}) -> ()"
    results = ["Tensor"] * len(overloads(operator)[form])
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"{name}({_schema(operator.arguments, operator.mutable)}) -> {result}"


def _made(operator, results, values):
    """The results, made by torch on the device of the inputs."""
    tensors = [(key, one) for key, value in values.items()
               for one in (value if isinstance(value, (list, tuple)) else (value,))
               if isinstance(one, torch.Tensor)]
    first, like = tensors[0] if tensors else (None, None)  # lists may be empty
    for key, tensor in tensors:
        if tensor.device != like.device:
            raise VeloError(
                f"velo_{operator.name}: args.{key}.device: expected {like.device}, where {first} "
                f"is, got {tensor.device}"
            )
    shapes = symbolic.infer(operator.name, values) if results else {}
    return tuple(
        torch.empty(shapes[f.name][0], dtype=shapes[f.name][1], device=like.device)
        for f in results)


def _returned(made):
    return made if len(made) > 1 else made[0] if made else None


def _fake(operator, form):
    names, results = [f.name for f in operator.arguments], overloads(operator)[form]
    return lambda *arguments, **named: _returned(
        _made(operator, results, {**dict(zip(names, arguments)), **named}))


def _compute(operator, form):
    names, results = [f.name for f in operator.arguments], overloads(operator)[form]

    def compute(*arguments):
        values = dict(zip(names, arguments))
        made = _made(operator, results, values)
        call(operator.name, **values, **dict(zip((f.name for f in results), made)))
        return _returned(made)

    return compute


def _compute_out(operator):
    names = [f.name for f in operator.fields]
    return lambda *arguments: call(operator.name, **dict(zip(names, arguments)))


def _address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def _adapter():
    """libvelo_adapters.so, once it has registered the operators, and ""; else None, and why. The
    operators are those of the library it is linked to, which may be another release than the one
    described here."""
    opened = library().c  # first, so that the adapters are linked to it where they can be
    try:
        adapters = _libraries.adapters()
    except ImportError as error:  # libvelo.so alone serves too, slower
        return None, str(error)
    if _address(adapters.velo_version) != _address(opened.velo_version):
        return None, "libvelo_adapters.so is linked to another libvelo.so than the one opened here"
    if not hasattr(adapters, "velo_torch_register"):
        return None, "libvelo_adapters.so is older than torch's adapter"
    if adapters.velo_torch_register() != 0:
        return None, _libraries.text_of(adapters.velo_adapters_last_error)

    def contexts():
        context = c.velo_context()
        library().check(adapters.velo_torch_context(ctypes.byref(context)))
        return [context]

    library().contexts_of_adapter = contexts
    return adapters, ""


def _by_ctypes(operators):
    home = torch.library.Library("velo", "DEF")
    for operator in operators:
        for form in overloads(operator):
            home.define(schema_of(operator, form))
            home.impl(operator.name + ("." + form if form else ""),
                      _compute_out(operator) if form == "out" else _compute(operator, form), "CPU")
    _owned.append(home)


def _register_fakes(operators):
    home = torch.library.Library("velo", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore")  # that the adapter's kernels for meta tensors are overridden is meant
        for operator in operators:
            for form in overloads(operator):
                name, fake = operator.name + ("." + form if form else ""), _fake(operator, form)
                if hasattr(torch.library, "register_fake"):
                    extra = {"allow_override": True} if by_adapter else {}
                    torch.library.register_fake("velo::" + name, fake, lib=home, **extra)
                else:
                    home.impl(name, fake, "Meta")
    _owned.append(home)


def _consume_override_warning(name):
    """torch warns once in a process that a kernel is overridden, which enable() means to do. From C
    it would come to the terminal."""
    home = torch.library.Library("velo", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        home.impl(name, lambda *_: None, "CPU")
    home._destroy()


adapter, why_not = _adapter()
by_adapter = adapter is not None
if by_adapter:
    _consume_override_warning(next(iter(library().operators)))
else:
    _by_ctypes(library().operators.values())
_register_fakes(library().operators.values())


def overload(name, which="default"):
    """torch.ops.velo.<name>.<which>, the cheapest thing to call. An adapter older than the library
    lacks the newest fields, which stand at the end: they are left out of its calls.
    """
    operator, run = library().operators[name], getattr(getattr(torch.ops.velo, name), which)
    given, taken = operator.fields if which == "out" else operator.arguments, len(
        run._schema.arguments)
    return run if len(given) == taken else lambda *arguments: run(*arguments[:taken])


def fullest(operator):
    """The functional form that gives all results."""
    return overload(operator.name, "full" if "full" in overloads(operator) else "default")
