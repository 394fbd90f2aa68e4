"""Two ranks, a process each, with a group of velo's between them: a host's own operators carry out
tensor-parallel layers, a norm and a loss, and are held to the whole in numpy, and so are the
gradients that JAX and MindSpore derive. Usage: two_ranks_test.py jax|torch|mindspore

VELO_ADAPTERS names libvelo_adapters.so.
"""
import ctypes
import os
import sys

import numpy as np

from two_processes import RANKS, make_group, on_two_ranks

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "capi", "python")]

ROWS, HIDDEN, INNER, SYMBOLS = 6, 16, 24, 40


# ---- the whole, in double

def values(*shape, seed):
    return np.random.default_rng(seed).standard_normal(shape)


X, UP = values(ROWS, HIDDEN, seed=1), values(INNER, HIDDEN, seed=2)
DOWN, WEIGHT = values(HIDDEN, INNER, seed=3), values(ROWS, HIDDEN, seed=4)
LOGITS = values(ROWS, SYMBOLS, seed=5)
TARGETS = np.array([3, 39, 20, 0, 19, 31], np.int32)
GAIN = values(HIDDEN, seed=6)


def silu(x):
    return x / (1 + np.exp(-x))


def feed_forward():
    """The gradients of sum(WEIGHT * DOWN silu(UP x)): of x, UP and DOWN."""
    inner = X @ UP.T
    gated = silu(inner)
    sigmoid = 1 / (1 + np.exp(-inner))
    dinner = (WEIGHT @ DOWN) * (sigmoid * (1 + inner * (1 - sigmoid)))
    return dinner @ UP, dinner.T @ X, WEIGHT.T @ gated


def losses():
    top = LOGITS.max(-1, keepdims=True)
    lse = np.log(np.exp(LOGITS - top).sum(-1)) + top[:, 0]
    return lse - LOGITS[np.arange(ROWS), TARGETS]


def normed():
    return X * GAIN / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-6)


# ---- the hosts: arrays, operators by name, gradients

def own_context(library):
    """A context in which the host's operators run from now on: a group is of one context."""
    import velo.ctypes as abi
    context = abi.velo_context()
    assert library.velo_context_create(None, ctypes.byref(context)) == 0
    assert library.velo_adapters_set_context(context) == 0
    return context


class Jax:
    def __init__(self):
        import jax
        import velo.jax
        from velo import spec
        self.jax, self.velo = jax, velo.jax
        self.context, self.library = own_context(spec.library), spec.library

    def array(self, x):
        return self.jax.numpy.asarray(x)

    def silu(self, x):
        return self.jax.nn.silu(x)

    def run(self, name, *inputs, **attributes):
        made = getattr(self.velo, name)(*inputs, **attributes)
        return made[0] if isinstance(made, (tuple, list)) else made

    def gradients(self, loss, arguments):
        return self.jax.jit(self.jax.value_and_grad(loss, tuple(range(len(arguments)))))(*arguments)


class MindSpore:
    def __init__(self):
        import mindspore
        import velo.mindspore
        from velo import spec
        self.ms, self.velo = mindspore, velo.mindspore
        self.context, self.library = own_context(spec.library), spec.library

    def array(self, x):
        return self.ms.Tensor(np.ascontiguousarray(x))

    def silu(self, x):
        return self.ms.ops.silu(x)

    def run(self, name, *inputs, **attributes):
        cell = getattr(self.velo, "".join(word.title() for word in name.split("_")))
        made = cell(**attributes)(*inputs)
        return made[0] if isinstance(made, (tuple, list)) else made

    def gradients(self, loss, arguments):
        places = tuple(range(len(arguments)))
        return self.ms.value_and_grad(loss, places)(*arguments)


class Torch:
    """Its functions take no group; call() does, with every tensor."""
    OUTPUTS = {
        "column_parallel_linear": lambda x, w: (RANKS * x.shape[0], w.shape[0]),
        "row_parallel_linear": lambda x, w: (x.shape[0] // RANKS, w.shape[0]),
        "parallel_rms_norm": lambda x, gamma: x.shape,
        "vocab_parallel_cross_entropy": lambda logits, targets: targets.shape
    }

    def __init__(self):
        import torch
        import velo.torch
        from velo.torch.binding import call, library
        self.torch, self.call = torch, call
        torch.set_num_threads(1)
        self.context, self.library, self.operator = (library().context()[0], library().c,
                                                     library().operator)

    def array(self, x):
        return self.torch.from_numpy(np.ascontiguousarray(x))

    def silu(self, x):
        return self.torch.nn.functional.silu(x)

    def run(self, name, *inputs, **attributes):
        made = self.torch.empty(*self.OUTPUTS[name](*inputs))
        fields = self.operator(name).fields
        read = [f.name for f in fields if f.kind == "tensor" and f.direction == "in"]
        written = next(f.name for f in fields if f.kind == "tensor" and f.direction == "out")
        self.call(name, **dict(zip(read, inputs)), **{written: made}, **attributes)
        return made


HOSTS = {"jax": Jax, "torch": Torch, "mindspore": MindSpore}


# ---- a rank

def part(x, rank, axis=0):
    return np.split(x, RANKS, axis)[rank].astype(np.float32)


def check(what, got, truth):
    got = np.asarray(got.detach() if hasattr(got, "detach") else got, np.float64)
    assert got.shape == truth.shape, (what, got.shape, truth.shape)
    far = np.linalg.norm(got - truth) / np.linalg.norm(truth)
    assert far < 1e-5, f"{what}: {far:.1e} away"


def run_feed_forward(host, group, rank):
    """Rows are cut between the layers, the matrices between the ranks. A rank's loss is of its own
    rows; the gradients are those of the ranks' sum."""
    weight = host.array(part(WEIGHT, rank))

    def loss(x, up, down):
        inner = host.run("column_parallel_linear", x, up, sequence_parallel=True, group=group)
        out = host.run("row_parallel_linear", host.silu(inner), down, sequence_parallel=True,
                       group=group)
        return (weight * out).sum()

    arguments = [host.array(a) for a in (part(X, rank), part(UP, rank), part(DOWN, rank, 1))]
    _, (dx, dup, ddown) = host.gradients(loss, arguments)
    wanted_x, wanted_up, wanted_down = feed_forward()
    check("gradient of x", dx, np.split(wanted_x, RANKS)[rank])
    check("gradient of the column-parallel weight", dup, np.split(wanted_up, RANKS)[rank])
    check("gradient of the row-parallel weight", ddown, np.split(wanted_down, RANKS, 1)[rank])


def run_forwards(host, group, rank):
    """The layers, a norm of a hidden dimension and a loss of classes that are cut."""
    x = host.array(part(X, rank))
    inner = host.run("column_parallel_linear", x, host.array(part(UP, rank)),
                     sequence_parallel=True, group=group)
    check("column-parallel", inner, np.split(X @ UP.T, RANKS, 1)[rank])
    out = host.run("row_parallel_linear", host.silu(inner), host.array(part(DOWN, rank, 1)),
                   sequence_parallel=True, group=group)
    check("row-parallel", out, np.split(silu(X @ UP.T) @ DOWN.T, RANKS)[rank])
    y = host.run("parallel_rms_norm", host.array(part(X, rank, 1)), host.array(part(GAIN, rank)),
                 group=group)
    check("norm", y, np.split(normed(), RANKS, 1)[rank])
    loss = host.run("vocab_parallel_cross_entropy", host.array(part(LOGITS, rank, 1)),
                    host.array(TARGETS), group=group, vocab_begin=rank * SYMBOLS // RANKS,
                    vocab_size=SYMBOLS)
    check("loss", loss, losses())


def run_rank(kind, folder, rank):
    host = HOSTS[kind]()
    group = make_group(host.library, host.context, folder, rank)
    run_forwards(host, group.value, rank)
    if kind != "torch":  # whose autograd knows no groups
        run_feed_forward(host, group.value, rank)
    host.library.velo_group_destroy(group)
    print(f"rank {rank} of {kind}: right")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        on_two_ranks(__file__, sys.argv[1])
    else:
        run_rank(sys.argv[1], sys.argv[2], int(sys.argv[3]))
