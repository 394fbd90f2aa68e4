#!/usr/bin/env python3
"""What two ranks exchange and share through velo, beside torch over gloo and its DTensor.

    bench_torch_ranks.py [--seconds 1] [--filter TEXT] [--json]

Two processes of one thread, each on a processor of its own where there are two, have a group of
velo's in shared memory and one of gloo's. In each row the contenders take turns, call by call, each
round beginning with another. A call costs what the slower rank needed, from a barrier on; a figure
is the lower quartile over the rounds.

    sequence_all_to_all   rows of all heads become all rows of a rank's heads, or the reverse; gloo:
                          all_to_all_single of as many bytes, which does not put rows in order;
                          gloo ordered: with the copies that do. Shapes: rows of each rank, heads of
                          all, elements of a head.
    ring exchange         keys and values go to the next rank, and the previous one's come; gloo:
                          batch_isend_irecv. Shapes: rows, heads, elements of each tensor.
    parallel linear pair  column_parallel_linear, silu, row_parallel_linear and their gradients,
                          with sequence parallelism; DTensor: ColwiseParallel, RowwiseParallel.
                          Shapes: rows of all ranks, hidden, inner of all ranks.

Results of the contenders are compared: exchanges bit for bit, layers within rounding. It runs with
the Python that has torch (VELO_HOSTS_PYTHON, else .venv-hosts). VELO_LIBRARY names the library,
else the build's is taken. Goals: goals.json, torch_ranks.
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent
RANKS = 2
FEWEST, MOST = 12, 400  # rounds
# As in bench_torch.py: torch keeps its memory.
KEPT = {"MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 28),
        "MALLOC_MMAP_THRESHOLD_": str(1 << 40)}


# ---- velo: calls of C functions whose arguments are made once


class Velo:
    """This rank's context and group; prepared calls keep the tensors that they name."""

    def __init__(self, folder, rank):
        sys.path.insert(0, str(ROOT / "capi" / "python"))
        import velo.ctypes as abi
        self.abi, self.library = abi, abi.load()
        self.context, self.stream, self.group = (abi.velo_context(), abi.velo_stream(),
                                                 abi.velo_group())
        self.do(self.library.velo_context_create(abi.velo_context_desc(threads=1), self.context))
        self.do(self.library.velo_context_stream(self.context, self.stream))
        name = "torch-ranks-" + os.path.basename(folder)
        desc = abi.velo_group_desc(transport=abi.VELO_TRANSPORT_SHM, name=name.encode(), rank=rank,
                                   size=RANKS, timeout_ns=60 * 10**9)
        self.do(self.library.velo_group_create(self.context, desc, self.group))

    def do(self, status):
        self.abi.check(self.library, status)

    def barrier(self):
        self.do(self.library.velo_group_barrier(self.stream, self.group))

    def view(self, tensor):
        import torch
        abi = self.abi
        code = {torch.float32: abi.VELO_DTYPE_FLOAT, torch.bfloat16: abi.VELO_DTYPE_BFLOAT}
        shape = (ctypes.c_int64 * tensor.dim())(*tensor.shape)
        made = abi.velo_tensor(
            data=tensor.data_ptr(), device=abi.velo_device(abi.VELO_DEVICE_CPU, 0),
            ndim=tensor.dim(),
            dtype=abi.velo_dtype(code[tensor.dtype], 8 * tensor.element_size(), 1), shape=shape)
        made.kept = tensor, shape
        return made

    def prepared(self, name, **fields):
        """A call without arguments of operator `name`, over torch's tensors."""
        import torch
        values = {
            key: ctypes.pointer(self.view(value)) if isinstance(value, torch.Tensor) else value
            for key, value in fields.items()
        }
        args = getattr(self.abi, f"velo_{name}_args")(**values)
        function = getattr(self.library, f"velo_{name}")
        return lambda kept=values: self.do(function(self.stream, args))

    def in_group(self, name, **fields):
        return self.prepared(name, group=self.group, **fields)

    def exchange(self, sent, received, peer):
        abi = self.abi
        views = [self.view(tensor) for tensor in (*sent, *received)]
        messages = (abi.velo_group_message * len(views))(*(abi.velo_group_message(
            x=ctypes.pointer(view), rank=peer,
            direction=abi.VELO_MESSAGE_SEND if i < len(sent) else abi.VELO_MESSAGE_RECEIVE)
                                                           for i, view in enumerate(views)))
        return lambda kept=views: self.do(
            self.library.velo_group_exchange(self.stream, self.group, messages, len(views)))


# ---- rows: each gives {contender: a call}, velo's first, and a check of their results


def seeded(shape, dtype, seed):
    import torch
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return (numbers / shape[-1]**0.5).to(dtype)


def same(ours, *theirs):
    import torch
    return all(torch.equal(ours, other) for other in theirs)


def heads_row(velo, rank, dtype, shape, to_heads):
    import torch
    import torch.distributed as dist
    rows, heads, width = shape
    by_rows, by_heads = shape, (rows * RANKS, heads // RANKS, width)
    x = seeded(by_rows if to_heads else by_heads, dtype, rank)
    y, ordered, moved = (torch.empty(by_heads if to_heads else by_rows, dtype=dtype)
                         for _ in range(3))
    apart = (RANKS, rows, heads // RANKS, width)
    cut = velo.abi.VELO_SEQUENCE_CUT_HEADS if to_heads else velo.abi.VELO_SEQUENCE_CUT_ROWS

    def in_order():
        if to_heads:
            sent = x.view(rows, *apart[:1], *apart[2:]).transpose(0, 1).contiguous()
            dist.all_to_all_single(ordered.view(apart), sent)
        else:
            got = torch.empty(apart, dtype=dtype)
            dist.all_to_all_single(got, x.view(apart))
            ordered.view(rows, *apart[:1], *apart[2:]).copy_(got.transpose(0, 1))

    return {
        "velo": velo.in_group("sequence_all_to_all", x=x, y=y, to=cut),
        "gloo": lambda: dist.all_to_all_single(moved.view(-1), x.view(-1)),
        "gloo ordered": in_order
    }, lambda: same(y, ordered)


def ring_row(velo, rank, dtype, shape):
    import torch
    import torch.distributed as dist
    sent = [seeded(shape, dtype, 2 * rank + i) for i in range(2)]
    ours, theirs = ([torch.empty(shape, dtype=dtype) for _ in range(2)] for _ in range(2))
    other = 1 - rank

    def by_gloo():
        operations = [dist.P2POp(dist.isend, tensor, other) for tensor in sent]
        operations += [dist.P2POp(dist.irecv, tensor, other) for tensor in theirs]
        for request in dist.batch_isend_irecv(operations):
            request.wait()

    return {
        "velo": velo.exchange(sent, ours, other),
        "gloo": by_gloo
    }, lambda: all(map(same, ours, theirs))


def layers_row(velo, rank, dtype, shape):
    import torch
    rows, hidden, inner = shape
    weights = seeded((inner, hidden), dtype, 1), seeded((hidden, inner), dtype, 2)
    x, dy = (seeded((rows, hidden), dtype, seed).chunk(RANKS)[rank].contiguous()
             for seed in (3, 4))
    layers = cut_by_torch(weights)
    got = {}

    def by_torch():
        given = x.detach().requires_grad_()
        layers.zero_grad()
        y = layers(given)
        y.backward(dy)
        got.update(y=waited(y.detach()), dx=waited(given.grad),
                   dup=layers[0].weight.grad.to_local(), ddown=layers[2].weight.grad.to_local())

    by_velo, made = cut_by_velo(velo, x, dy, weights[0].chunk(RANKS)[rank].contiguous(),
                                weights[1].chunk(RANKS, 1)[rank].contiguous())
    bound = 1e-5 if dtype == torch.float32 else 2e-2

    def is_right():
        return all(
            float((made[name].float() - truth.float()).norm() / truth.float().norm()) < bound
            for name, truth in got.items())

    return {"velo": by_velo, "DTensor": by_torch}, is_right


def waited(tensor):
    """The tensor, whose collective DTensor may have left running."""
    from torch.distributed._functional_collectives import AsyncCollectiveTensor
    return tensor.wait() if isinstance(tensor, AsyncCollectiveTensor) else tensor


def cut_by_torch(weights):
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    up, down = weights
    layers = torch.nn.Sequential(
        *(torch.nn.Linear(*reversed(w.shape), bias=False, dtype=w.dtype) for w in weights))
    layers.insert(1, torch.nn.SiLU())
    with torch.no_grad():
        layers[0].weight.copy_(up)
        layers[2].weight.copy_(down)
    return parallelize_module(
        layers, init_device_mesh("cpu", (RANKS,)), {
            "0": ColwiseParallel(input_layouts=Shard(0)),
            "2": RowwiseParallel(output_layouts=Shard(0))
        })


def cut_by_velo(velo, x, dy, up, down):
    """The call of both layers and their gradients, and its results by name."""
    import torch
    rows, inner = x.shape[0] * RANKS, up.shape[0]
    like = lambda *shape: torch.empty(shape, dtype=x.dtype)
    gathered, pre, gated, dgated, dpre = like(rows, x.shape[1]), *(like(rows, inner)
                                                                   for _ in range(4))
    made = {"y": like(*x.shape), "dx": like(*x.shape), "dup": like(*up.shape),
            "ddown": like(*down.shape)}
    linear = lambda name, **fields: velo.in_group(name, sequence_parallel=1, **fields)
    calls = (
        linear("column_parallel_linear", x=x, weight=up, y=pre, gathered=gathered),
        velo.prepared("silu", x=pre, y=gated),
        linear("row_parallel_linear", x=gated, weight=down, y=made["y"]),
        linear("row_parallel_linear_backward", dy=dy, x=gated, weight=down, dx=dgated,
               dweight=made["ddown"]),
        velo.prepared("silu_backward", dy=dgated, x=pre, dx=dpre),
        linear("column_parallel_linear_backward", dy=dpre, gathered=gathered, weight=up,
               dx=made["dx"], dweight=made["dup"]),
    )

    def step():
        for call in calls:
            call()
    return step, made


def rows_of(velo, rank):
    """(name, dtype, shape as text, a function that makes the row) of every row."""
    import torch
    text = lambda shape: "x".join(map(str, shape))
    for short, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        for shape in ((1024, 16, 64), (4096, 32, 128)):
            for way in ("to heads", "to rows"):
                yield ("sequence_all_to_all", short, f"{text(shape)} {way}",
                       lambda d=dtype, s=shape, w=way: heads_row(velo, rank, d, s, w == "to heads"))
        for shape in ((1024, 4, 64), (4096, 8, 128)):
            yield ("ring exchange", short, text(shape),
                   lambda d=dtype, s=shape: ring_row(velo, rank, d, s))
        for shape in ((1024, 512, 1408), (2048, 512, 1408), (2048, 1024, 2816)):
            yield ("parallel linear pair", short, text(shape),
                   lambda d=dtype, s=shape: layers_row(velo, rank, d, s))


# ---- a rank's process


def slowest(times):
    """The slower rank's times."""
    import torch
    import torch.distributed as dist
    all_times = torch.tensor(times, dtype=torch.float64)
    dist.all_reduce(all_times, dist.ReduceOp.MAX)
    return all_times.tolist()


def measure(velo, calls, seconds):
    """Seconds of a call of each contender at the lower quartile, and the rounds."""
    def timed(call):
        velo.barrier()
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    first = slowest([min(timed(call) for _ in range(3)) for call in calls])
    rounds = max(FEWEST, min(MOST, int(seconds / sum(first))))
    times = [[0.0] * rounds for _ in calls]
    for i in range(rounds):
        for j in range(len(calls)):
            at = (i + j) % len(calls)
            times[at][i] = timed(calls[at])
    return [sorted(slowest(each))[rounds // 4] for each in times], rounds


def result_of(name, dtype, shape, times, rounds):
    us = {contender: 1e6 * seconds for contender, seconds in times.items()}
    ours = us.pop("velo")
    best = min(us, key=us.get)
    return {
        "name": name, "dtype": dtype, "shape": shape, "residency": "shm", "threads": RANKS,
        "unit": "us", "velo": ours, "peer": us[best], "peer_name": best, "ratio": us[best] / ours,
        "peers": us, "rounds": rounds
    }


def run_rank(options):
    import torch
    import torch.distributed as dist
    folder, rank = options.folder, options.rank
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) >= RANKS:
        os.sched_setaffinity(0, {processors[rank]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/gloo", rank=rank,
                            world_size=RANKS)
    velo = Velo(folder, rank)
    for name, dtype, shape, make in rows_of(velo, rank):
        if options.filter not in f"{name} {dtype} {shape}":
            continue
        calls, is_right = make()
        times, rounds = measure(velo, list(calls.values()), options.seconds)
        if not is_right():
            sys.exit(f"bench_torch_ranks: wrong result: {name} {dtype} {shape}")
        if rank == 0:
            row = result_of(name, dtype, shape, dict(zip(calls, times)), rounds)
            print(json.dumps(row), flush=True)
    dist.barrier()
    dist.destroy_process_group()


# ---- the parent


def text_of(row):
    peers = "  ".join(f"{name} {us:9.0f} {us / row['velo']:6.2f}x"
                      for name, us in row["peers"].items())
    return (f"{row['name']:21} {row['dtype']:4} {row['shape']:24} {row['velo']:9.0f} us  {peers}  "
            f"({row['rounds']} rounds)")


def judge(rows):
    """Verdicts of goals.json: whether each row of a goal is as many times as fast as its peer."""
    sys.path.insert(0, str(FOLDER))
    from render_results import matches
    reached = True
    for goal in json.loads((FOLDER / "goals.json").read_text())["torch_ranks"]:
        (clause,) = goal["any"]
        of = [row for row in rows
              if all(matches(pattern, row[key]) for key, pattern in goal["row"].items())]
        if not of:
            continue
        least = min(of, key=lambda row: row["peers"][clause["peer"]] / row["velo"])
        ratio = least["peers"][clause["peer"]] / least["velo"]
        verdict = "reached" if ratio >= clause["bound"] else "NOT REACHED"
        reached &= ratio >= clause["bound"]
        print(f"{verdict:11} {goal['id']}: {ratio:.2f} of {least['name']} {least['dtype']} "
              f"{least['shape']}, goal at least {clause['bound']:.2f}", file=sys.stderr)
    return reached


def run(options):
    python = os.environ.get("VELO_HOSTS_PYTHON", str(ROOT / ".venv-hosts" / "bin" / "python"))
    environment = {"VELO_LIBRARY": str(ROOT / "build" / "capi" / "libvelo.so.1"),
                   "OMP_NUM_THREADS": "1", **KEPT, **os.environ}
    if not pathlib.Path(python).exists():
        sys.exit(f"bench: {python} is not there (tests/hosts/environments.sh makes it)")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        command = [python, __file__, "--seconds", str(options.seconds), "--filter", options.filter,
                   "--folder", folder, "--rank"]
        other = subprocess.Popen([*command, "1"], env=environment)
        with subprocess.Popen([*command, "0"], env=environment, text=True,
                              stdout=subprocess.PIPE) as first:
            for line in first.stdout:
                if line.startswith("{"):
                    rows.append(json.loads(line))
                    print(line.strip() if options.json else text_of(rows[-1]), flush=True)
        if first.returncode != 0:
            other.kill()
        if other.wait() != 0 or first.returncode != 0:
            sys.exit("bench: a rank failed")
    return 0 if judge(rows) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1, help="of a row")
    parser.add_argument("--filter", default="", help='a part of "name type shape"')
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    return run(options) if options.rank is None else run_rank(options)


if __name__ == "__main__":
    sys.exit(main())
