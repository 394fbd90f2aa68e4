"""Shapes of results when sizes are symbols, as they are while torch.compile or torch.export traces.

velo_op_infer takes numbers. It is asked twice, with the symbols set to two sets of large numbers
that share no factor but 16 (so that halves and quarters are whole); a size of a result that stands
to a size of an input in one ratio both times is that symbol times the ratio, one that is the same
both times is a number. Where the operator refuses such numbers, because sizes have to agree that
the trace does not know to be equal, symbols with one value get one number, and the trace learns
that those sizes are equal. What follows no rule is asked with the sizes that the trace began with,
which binds the trace to them.
"""
import fractions
import itertools

import torch

from . import binding

_PRIMES = ((1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049), (2003, 2011, 2017, 2027, 2029, 2039,
                                                              2053, 2063))
_SymInt = getattr(torch, "SymInt", ())


class _Shaped:
    """As much of a tensor as velo_op_infer looks at."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype


def infer(name, values):
    """{output: (shape, dtype)} with symbols where they belong."""
    shapes = {key: value.shape for key, value in values.items() if isinstance(value, torch.Tensor)}
    symbolic = [size for shape in shapes.values() for size in shape if isinstance(size, _SymInt)]
    symbols = sorted({symbol for size in symbolic for symbol in size.node.expr.free_symbols},
                     key=str)
    if not symbols:
        return binding.infer(name, **values)
    return (_by_probes(name, values, shapes, {symbol: symbol for symbol in symbols}) or
            _by_equal_sizes(name, values, shapes, symbols, symbolic) or
            binding.infer(name, **values))


def _by_equal_sizes(name, values, shapes, symbols, symbolic):
    """As by probes, symbols of one value being the same; what was equal so is written down for the
    trace."""
    known = getattr(symbolic[0].node.shape_env, "backed_var_to_val",
                    None) or symbolic[0].node.shape_env.var_to_val
    if any(symbol not in known for symbol in symbols):
        return None
    found = _by_probes(name, values, shapes, {symbol: int(known[symbol]) for symbol in symbols})
    for one, two in itertools.combinations(symbolic, 2) if found else ():
        first, second = (size.node.expr.xreplace(known) for size in (one, two))
        if first == second:
            bool(one == two)  # asking is what tells the trace
    return found


def _by_probes(name, values, shapes, groups):
    """groups: {symbol: what all symbols have that get the same number}."""
    distinct = list(dict.fromkeys(groups.values()))
    if len(distinct) > len(_PRIMES[0]):
        return None
    probes = []
    for primes in _PRIMES:
        numbers = {symbol: 16 * primes[distinct.index(group)] for symbol, group in groups.items()}
        stand_ins = {
            key: _Shaped([_number(size, numbers) for size in shape], values[key].dtype)
            for key, shape in shapes.items()
        }
        try:
            probes.append((stand_ins, binding.infer(name, **{**values, **stand_ins})))
        except binding.VeloError:
            return None
    (first, one), (second, two) = probes
    sizes = [(size, a, b) for key, shape in shapes.items()
             for size, a, b in zip(shape, first[key].shape, second[key].shape) if a != b]
    found = {}
    for output, (shape, dtype) in one.items():
        expressed = [
            _expressed(a, b, sizes) for a, b in itertools.zip_longest(shape, two[output][0])
        ]
        if None in expressed:
            return None
        found[output] = expressed, dtype
    return found


def _number(size, numbers):
    return int(size.node.expr.xreplace(numbers)) if isinstance(size, _SymInt) else size


def _expressed(a, b, sizes):
    if a == b:
        return a
    for size, in_a, in_b in sizes:
        ratio = fractions.Fraction(a, in_a) if in_a else None
        if ratio is not None and b == in_b * ratio and max(ratio.numerator,
                                                           ratio.denominator) <= 64:
            return size * ratio.numerator // ratio.denominator if ratio != 1 else size
    return None
