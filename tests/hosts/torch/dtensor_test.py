"""A feed-forward of tensor-parallel layers with sequence parallelism: velo's linear layers over two
processes against torch's DTensor over gloo, forward and gradients, in float32.

Both have the same weights and the same rows. With SIZES=ROWSxHIDDENxINNER in the environment the
layers have that size, and each rank prints how long a forward with its gradient takes.
"""
import os
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path[:0] = [
    os.path.join(ROOT, part)
    for part in ("tests/hosts", "tests/hosts/ranks", "tests/parity", "capi/python")
]

from frameworks import torch  # noqa: E402
from two_processes import RANKS, make_group, on_two_ranks  # noqa: E402

from velo.torch.binding import call, library  # noqa: E402

ROWS, HIDDEN, INNER = (int(n) for n in os.environ.get("SIZES", "64x96x160").split("x"))
TIMED = "SIZES" in os.environ


def whole(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) / shape[-1]**0.5


class Torch:
    """torch's layers, cut by its own plan."""

    def __init__(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Shard
        from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                       parallelize_module)
        layers = torch.nn.Sequential(torch.nn.Linear(HIDDEN, INNER, bias=False), torch.nn.SiLU(),
                                     torch.nn.Linear(INNER, HIDDEN, bias=False))
        with torch.no_grad():
            layers[0].weight.copy_(whole(INNER, HIDDEN, seed=1))
            layers[2].weight.copy_(whole(HIDDEN, INNER, seed=2))
        self.layers = parallelize_module(
            layers, init_device_mesh("cpu", (RANKS,)), {
                "0": ColwiseParallel(input_layouts=Shard(0)),
                "2": RowwiseParallel(output_layouts=Shard(0))
            })

    def step(self, x, dy):
        x = x.clone().requires_grad_()
        self.layers.zero_grad()
        y = self.layers(x)
        y.backward(dy)
        up, down = (self.layers[i].weight.grad.to_local() for i in (0, 2))
        return {"y": y.detach(), "dx": x.grad, "dup": up, "ddown": down}


class Velo:
    """The same over velo's operators."""

    def __init__(self, rank, folder):
        self.library = library().c
        self.group = make_group(self.library, library().context()[0], folder, rank)
        self.up = whole(INNER, HIDDEN, seed=1).chunk(RANKS)[rank].contiguous()
        self.down = whole(HIDDEN, INNER, seed=2).chunk(RANKS, 1)[rank].contiguous()

    def call(self, name, **values):
        call(name, group=self.group.value, sequence_parallel=True, **values)

    def step(self, x, dy):
        gathered, inner = torch.empty(ROWS, HIDDEN), torch.empty(ROWS, INNER // RANKS)
        gated, y = torch.empty_like(inner), torch.empty_like(x)
        self.call("column_parallel_linear", x=x, weight=self.up, y=inner, gathered=gathered)
        call("silu", x=inner, y=gated)
        self.call("row_parallel_linear", x=gated, weight=self.down, y=y)
        dgated, dinner, dx = torch.empty_like(inner), torch.empty_like(inner), torch.empty_like(x)
        dup, ddown = torch.empty_like(self.up), torch.empty_like(self.down)
        self.call("row_parallel_linear_backward", dy=dy, x=gated, weight=self.down, dx=dgated,
                  dweight=ddown)
        call("silu_backward", dy=dgated, x=inner, dx=dinner)
        self.call("column_parallel_linear_backward", dy=dinner, gathered=gathered, weight=self.up,
                  dx=dx, dweight=dup)
        return {"y": y, "dx": dx, "dup": dup, "ddown": ddown}

    def close(self):
        self.library.velo_group_destroy(self.group)


def seconds_of(step, rounds):
    torch.distributed.barrier()
    begin = time.perf_counter()
    for _ in range(rounds):
        step()
    return (time.perf_counter() - begin) / rounds


def run_rank(folder, rank):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/gloo", rank=rank,
                                         world_size=RANKS)
    theirs, ours = Torch(), Velo(rank, folder)
    x = whole(ROWS, HIDDEN, seed=3).chunk(RANKS)[rank].contiguous()
    dy = whole(ROWS, HIDDEN, seed=4).chunk(RANKS)[rank].contiguous()
    wanted, got = theirs.step(x, dy), ours.step(x, dy)
    for name, truth in wanted.items():
        far = float((got[name] - truth).norm() / truth.norm())
        assert far < 1e-5, f"{name} of rank {rank}: {far:.1e} from DTensor's"
    if TIMED:
        rounds = [[seconds_of(lambda: one.step(x, dy), 5) for one in (theirs, ours)]
                  for _ in range(9)]
        times = [sorted(each)[2] for each in zip(*rounds)]
        print(f"rank {rank}: DTensor {1e3 * times[0]:.2f} ms, velo {1e3 * times[1]:.2f} ms, "
              f"{times[0] / times[1]:.2f}x")
    ours.close()
    torch.distributed.destroy_process_group()
    print(f"rank {rank}: {', '.join(wanted)} as DTensor has them")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        on_two_ranks(__file__)
    else:
        run_rank(sys.argv[1], int(sys.argv[2]))
