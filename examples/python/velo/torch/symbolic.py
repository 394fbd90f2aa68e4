"""Shapes of results when sizes are symbols, as they are while torch.compile or torch.export traces.

velo_op_infer takes numbers. It is asked twice, with the symbols set to two sets of large numbers that share no factor but 16 (so
that halves and quarters are whole); a size of a result that stands to a size of an input in one ratio both times is that symbol
times the ratio, one that is the same both times is a number. What follows neither rule, or is refused for such numbers, is asked
with the sizes that the trace began with, which binds the trace to them.
"""
import fractions
import itertools

import torch

from . import binding

_PRIMES = ((1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049), (2003, 2011, 2017, 2027, 2029, 2039, 2053, 2063))
_SymInt = getattr(torch, "SymInt", ())


class _Shaped:
    """As much of a tensor as velo_op_infer looks at."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype


def infer(name, values):
    """{output: (shape, dtype)} with symbols where they belong."""
    shapes = {key: value.shape for key, value in values.items() if isinstance(value, torch.Tensor)}
    symbols = {symbol for shape in shapes.values() for size in shape if isinstance(size, _SymInt)
               for symbol in size.node.expr.free_symbols}
    if symbols and len(symbols) <= len(_PRIMES[0]):
        found = _by_probes(name, values, shapes, sorted(symbols, key=str))
        if found is not None:
            return found
    return binding.infer(name, **values)


def _by_probes(name, values, shapes, symbols):
    probes = []
    for primes in _PRIMES:
        numbers = {symbol: 16 * prime for symbol, prime in zip(symbols, primes)}
        stand_ins = {key: _Shaped([_number(size, numbers) for size in shape], values[key].dtype) for key, shape in shapes.items()}
        try:
            probes.append((stand_ins, binding.infer(name, **{**values, **stand_ins})))
        except binding.VeloError:
            return None
    (first, one), (second, two) = probes
    sizes = [(size, a, b) for key, shape in shapes.items()
             for size, a, b in zip(shape, first[key].shape, second[key].shape) if a != b]
    found = {}
    for output, (shape, dtype) in one.items():
        symbolic = [_expressed(a, b, sizes) for a, b in itertools.zip_longest(shape, two[output][0])]
        if None in symbolic:
            return None
        found[output] = symbolic, dtype
    return found


def _number(size, numbers):
    return int(size.node.expr.xreplace(numbers)) if isinstance(size, _SymInt) else size


def _expressed(a, b, sizes):
    if a == b:
        return a
    for size, in_a, in_b in sizes:
        ratio = fractions.Fraction(a, in_a) if in_a else None
        if ratio is not None and b == in_b * ratio and max(ratio.numerator, ratio.denominator) <= 64:
            return size * ratio.numerator // ratio.denominator if ratio != 1 else size
    return None
