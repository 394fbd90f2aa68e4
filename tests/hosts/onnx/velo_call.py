"""A call of velo by its operator's name, on torch tensors over the same memory: the outputs are
made as velo_op_infer describes them."""
import torch

from velo.torch import VeloError, call, infer


class Refused(Exception):
    """A case that has no answer to compare with, and why."""


REFUSALS = (Refused, VeloError, TypeError, ValueError, AttributeError)


def run(name, **values):
    """{output: tensor}. Arguments that are None are left out; velo refuses fields that it lacks."""
    given = {key: value for key, value in values.items() if value is not None}
    outputs = {
        key: torch.empty(shape, dtype=dtype)
        for key, (shape, dtype) in infer(name, **given).items() if key not in given
    }
    call(name, **outputs, **given)
    return {**given, **outputs}
