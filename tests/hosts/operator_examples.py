"""The examples with which operators describe themselves, as numpy arrays: calls for the tests of
any host."""
import numpy as np


def dtype_of(field, value):
    """The dtype of a tensor of an example: its own, or the first that the field takes."""
    own = value.get("dtype") if isinstance(value, dict) else None
    return own or (field.dtypes or ["f32"])[0]


def array(field, value, numbers, dtypes):
    """A tensor of an example: its numbers, or a shape whose numbers are drawn. dtypes: numpy's, by
    velo's names."""
    if not isinstance(value, dict):
        value = {"values": value}
    dtype = np.dtype(dtypes[dtype_of(field, value)])
    if "values" in value:
        return np.asarray(value["values"]).astype(dtype)
    low, high = value.get("range", (-1, 1))
    drawn = numbers.uniform(low, high, value["shape"])
    return np.asarray(np.floor(drawn) if np.issubdtype(dtype, np.integer) else drawn).astype(dtype)


def calls(op, numbers, dtypes):
    """Each example of an operator: (tensors, attributes, known results). Those with a tensor of
    another dtype are left out."""
    for example in op.examples:
        given = example["in"]
        if any(op.fields[name].holds_tensors and dtype_of(op.fields[name], value) not in dtypes
               for name, value in given.items()):
            continue
        yield ({
            name: array(op.fields[name], value, numbers, dtypes)
            for name, value in given.items()
            if op.fields[name].holds_tensors
        }, {name: value for name, value in given.items() if not op.fields[name].holds_tensors}, {
            name: np.asarray(value["values"] if isinstance(value, dict) else value)
            for name, value in example.get("out", {}).items()
        })
