#!/usr/bin/env python3
"""Microseconds a call of small operators from each host, beside the framework's own operators.

    bench_hosts.py [--hosts torch,torch_kernels,jax,mindspore,tvm_ffi] [--blocks 61] [--json]

rms_norm 4x64, add 4x64, swiglu 4x128 (a composition in every framework) and cross_entropy 4x64,
float32, one thread; forward, and where the host has gradients the forward call that records one and
its backward pass together. The shapes are so small that the way to velo is what is measured.
Contenders of a host: `velo`, the function its users call; `own`, what they would call without it;
of torch `dispatcher` too, velo's operator alone, torch.ops.velo.<op>.default. torch_kernels are
sizes at which the kernel counts, in three element types: what enable() replaces in torch, or leaves
(capi/python/velo/torch/costs.py). Each host is a
process of its own, with the Python that has it (VELO_HOSTS_PYTHON, VELO_MINDSPORE_PYTHON; by
default the two environments of tests/hosts/environments.sh). In it all contenders of all rows take
turns in blocks of about a millisecond, shorter than Linux's time slice; a figure is the lower
quartile over the blocks, of a call's wall time. Goals: goals.json, hosts. VELO_LIBRARY and
VELO_ADAPTERS name the libraries, else the build's are taken.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent
BLOCK = 1e-3  # seconds
EPSILON = 1e-5


# ---- hosts: each gives {(operator, mode, contender): a call without arguments}, and its name with
# version


def torch_host():
    import torch
    import velo.torch as velo

    torch.set_num_threads(1)
    functional, operators = torch.nn.functional, torch.ops.velo
    x, gain, other = torch.randn(4, 64), torch.randn(64), torch.randn(4, 64)
    wide, logits, targets = torch.randn(4, 128), torch.randn(4, 64), torch.randint(0, 64, (4,))

    def gated(t):
        gate, up = t.chunk(2, -1)
        return functional.silu(gate) * up

    cases = {
        "rms_norm": ((x, gain), lambda x, g: velo.rms_norm(x, g, EPSILON),
                     lambda x, g: torch.rms_norm(x, (64,), g, EPSILON),
                     lambda x, g: operators.rms_norm.default(x, g, EPSILON)), "add": (
                         (x, other), getattr(velo, "add", None), torch.add, operators.add.default),
        "swiglu": ((wide,), velo.swiglu, gated, operators.swiglu.default),
        "cross_entropy": ((logits, targets), velo.cross_entropy, functional.cross_entropy,
                          operators.cross_entropy.default),
    }
    calls = {}
    for name, (inputs, ours, own, dispatched) in cases.items():
        calls[name, "forward", "dispatcher"] = lambda f=dispatched, i=inputs: f(*i)
        for contender, function in (("velo", ours), ("own", own)):
            if function is None:
                continue
            leaves = [t.clone().requires_grad_() if t.is_floating_point() else t for t in inputs]
            wanted = [t for t in leaves if t.requires_grad]
            shape = function(*inputs).shape
            calls[name, "forward", contender] = lambda f=function, i=inputs: f(*i)
            calls[name, "gradient", contender] = (lambda f=function, a=leaves, w=wanted, d=torch.
                                                  ones(shape): torch.autograd.grad(f(*a), w, d))
    return f"torch {torch.__version__}", calls


def torch_kernels_host():
    import torch
    import velo.torch as velo

    torch.set_num_threads(1)
    functional, calls = torch.nn.functional, {}

    def gated(activation, **options):
        def function(t):
            gate, up = t.chunk(2, -1)
            return activation(gate, **options) * up
        return function

    cases = {
        "silu": (velo.silu, functional.silu),
        "gelu": (velo.gelu, functional.gelu),
        "gelu_tanh": (lambda t: velo.gelu(t, "tanh"),
                      lambda t: functional.gelu(t, approximate="tanh")),
        "fast_gelu": (velo.fast_gelu, lambda t: t * torch.sigmoid(1.702 * t)),
        "swiglu": (velo.swiglu, gated(functional.silu)),
        "geglu": (velo.geglu, gated(functional.gelu)),
        "rms_norm": (lambda t: velo.rms_norm(t, torch.ones(1024), EPSILON),
                     lambda t: torch.rms_norm(t, (1024,), torch.ones(1024, dtype=t.dtype), EPSILON)
                    )
    }
    for short, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16), ("f16", torch.float16)):
        x, weight = (torch.randn(rows, 1024).to(dtype) for rows in (128, 1024))
        cases["linear"] = (lambda t, w=weight: velo.matmul(t, w, transpose_b=True),
                           lambda t, w=weight: functional.linear(t, w))
        for name, functions in cases.items():
            leaf, slope = x.clone().requires_grad_(), torch.ones_like(functions[0](x))
            for contender, function in zip(("velo", "own"), functions):
                calls[f"{name} {short}", "forward", contender] = lambda f=function, i=x: f(i)
                calls[f"{name} {short}", "gradient",
                      contender] = (lambda f=function, i=leaf, d=slope: torch.autograd.
                                    grad(f(i), i, d))
        for count, size in ((64, 4096), (1, 1 << 20)):
            for contender, optimizer in (("velo", velo.AdamW), ("own", torch.optim.AdamW)):
                parameters = [torch.nn.Parameter(torch.ones(size, dtype=dtype))
                              for _ in range(count)]
                for parameter in parameters:
                    parameter.grad = torch.ones_like(parameter)
                calls[f"AdamW {count}x{size} {short}", "fused",
                      contender] = optimizer(parameters, fused=True).step
    return f"torch {torch.__version__}, 128x1024", calls


def jax_host():
    import jax
    import jax.numpy as jnp
    import velo.jax as velo

    keys = iter(jax.random.split(jax.random.key(1), 8))
    x, gain, other = (jax.random.normal(next(keys), shape) for shape in ((4, 64), (64,), (4, 64)))
    wide, logits = (jax.random.normal(next(keys), shape) for shape in ((4, 128), (4, 64)))
    targets = jnp.arange(4)

    def norm(x, g):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPSILON) * g

    def gated(t):
        gate, up = jnp.split(t, 2, -1)
        return jax.nn.silu(gate) * up

    def cross_entropy(logits, targets):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), targets[:, None], 1))

    cases = {
        "rms_norm": ((x, gain), lambda x, g: velo.rms_norm(x, g, EPSILON), norm),
        "add": ((x, other), getattr(velo, "add", None), jnp.add),
        "swiglu": ((wide,), velo.swiglu, gated),
        "cross_entropy": ((logits, targets), velo.cross_entropy, cross_entropy),
    }
    calls = {}
    for name, (inputs, ours, own) in cases.items():
        floating = tuple(i for i, t in enumerate(inputs) if jnp.issubdtype(t.dtype, jnp.floating))
        for contender, function in (("velo", ours), ("own", own)):
            if function is None:
                continue
            forward = jax.jit(function)
            gradient = jax.jit(jax.value_and_grad(lambda *t, f=function: jnp.sum(f(*t)), floating))
            calls[name, "forward",
                  contender] = lambda f=forward, i=inputs: f(*i).block_until_ready()
            calls[name, "gradient",
                  contender] = lambda f=gradient, i=inputs: jax.block_until_ready(f(*i))
    return f"jax {jax.__version__}", calls


def mindspore_host():
    import mindspore
    import numpy as np
    import velo.mindspore as velo
    from mindspore import Tensor, mint

    mindspore.set_device("CPU")
    numbers = np.random.default_rng(1)
    x, gain, other, wide, logits = (Tensor(numbers.standard_normal(shape).astype(np.float32))
                                    for shape in ((4, 64), (64,), (4, 64), (4, 128), (4, 64)))
    targets = Tensor(np.arange(4, dtype=np.int32))

    def norm(x, g):
        return x * mint.rsqrt(mint.mean(x * x, -1, True) + EPSILON) * g

    def gated(t):
        gate, up = mint.chunk(t, 2, -1)
        return mint.nn.functional.silu(gate) * up

    def gradient_of(function, inputs):
        run = mindspore.ops.grad(function,
                                 tuple(i for i, t in enumerate(inputs) if t.is_floating_point()))

        def gradient():
            made = run(*inputs)
            return (made[0] if isinstance(made, tuple) else made).asnumpy()
        return gradient

    cases = {
        "rms_norm": ((x, gain), velo.RmsNorm(EPSILON), norm),
        "add": ((x, other), velo.Add(), mint.add),
        "swiglu": ((wide,), velo.Swiglu(), gated),
        "cross_entropy": ((logits, targets), velo.CrossEntropy(reduction="none"),
                          lambda a, b: mindspore.ops.cross_entropy(a, b, reduction="none")),
    }
    calls = {}
    for name, (inputs, ours, own) in cases.items():
        for contender, function in (("velo", ours), ("own", own)):
            calls[name, "forward", contender] = lambda f=function, i=inputs: f(*i).asnumpy()
            calls[name, "gradient", contender] = gradient_of(function, inputs)
    return f"mindspore {mindspore.__version__}", calls


def tvm_ffi_host():
    import numpy as np
    import tvm_ffi

    velo = tvm_ffi.load_module(os.environ["VELO_ADAPTERS"])
    numbers = np.random.default_rng(1)
    x, gain, other, y, wide, logits = (tvm_ffi.from_dlpack(
        numbers.standard_normal(shape).astype(np.float32))
                                       for shape in ((4, 64), (64,), (4, 64), (4, 64), (4, 128),
                                                     (4, 64)))
    targets, loss = (
        tvm_ffi.from_dlpack(t) for t in (np.arange(4, dtype=np.int64), np.zeros((), np.float32)))
    norm, add, gated, entropy = (
        velo[f"velo_{name}"] for name in ("rms_norm", "add", "swiglu", "cross_entropy"))
    arrays = [np.random.randn(4, 64).astype(np.float32) for _ in range(2)]
    return f"tvm-ffi {tvm_ffi.__version__}", {
        ("rms_norm", "forward", "velo"): lambda: norm(x, gain, y, None, EPSILON),
        ("add", "forward", "velo"): lambda: add(x, other, y),
        ("add", "forward", "own"): lambda: np.add(*arrays),
        ("swiglu", "forward", "velo"): lambda: gated(wide, y),
        ("cross_entropy", "forward", "velo"): lambda: entropy(logits, targets, loss),
    }


HOSTS = {
    "torch": torch_host, "torch_kernels": torch_kernels_host, "jax": jax_host,
    "mindspore": mindspore_host, "tvm_ffi": tvm_ffi_host
}


# ---- a host's process


def measure(calls, blocks):
    """Microseconds a call of each, all taking turns."""
    counts, times = {}, {key: [] for key in calls}
    for key, call in calls.items():
        for _ in range(20):
            call()
        start = time.perf_counter()
        for _ in range(20):
            call()
        counts[key] = max(1, round(BLOCK / max((time.perf_counter() - start) / 20, 1e-7)))
    for _ in range(blocks):
        for key, call in calls.items():
            count = counts[key]
            call()  # what the others left in the caches
            start = time.perf_counter()
            for _ in range(count):
                call()
            times[key].append((time.perf_counter() - start) / count * 1e6)
    return {key: sorted(found)[len(found) // 4] for key, found in times.items()}


def serve(options):
    sys.path.insert(0, str(ROOT / "capi" / "python"))
    name, calls = HOSTS[options.child]()
    for (operator, mode, contender), microseconds in measure(calls, options.blocks).items():
        print(json.dumps({
            "host": options.child, "release": name, "operator": operator, "mode": mode,
            "contender": contender, "microseconds": round(microseconds, 3)
        }),
              flush=True)


# ---- the parent


def rows_of(host, options):
    build = ROOT / "build" / "capi"
    python = os.environ.get("VELO_MINDSPORE_PYTHON" if host == "mindspore" else "VELO_HOSTS_PYTHON")
    python = python or str(
        ROOT / (".venv-mindspore" if host == "mindspore" else ".venv-hosts") / "bin" / "python")
    environment = {
        "VELO_LIBRARY": str(build / "libvelo.so.1"),
        "VELO_ADAPTERS": str(build / "adapters" / "libvelo_adapters.so"), "OMP_NUM_THREADS": "1",
        **os.environ
    }
    if not pathlib.Path(python).exists():
        print(
            f"bench: {host} is left out, {python} is not there (tests/hosts/environments.sh makes "
            f"it)",
            file=sys.stderr)
        return []
    done = subprocess.run([python, __file__, "--child", host, "--blocks",
                           str(options.blocks)],
                          env=environment,
                          text=True,
                          stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"bench: {host} ended with exit code {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(rows):
    times = {(r["operator"], r["mode"], r["contender"]): r["microseconds"] for r in rows}
    print(f"{rows[0]['release']}, microseconds a call")
    for operator, mode in dict.fromkeys((o, m) for o, m, _ in times):
        parts = [f"{c} {t:7.2f}" for (o, m, c), t in times.items() if (o, m) == (operator, mode)]
        own, ours = times.get((operator, mode, "own")), times.get((operator, mode, "velo"))
        ratio = f"   velo / own {ours / own:5.2f}" if own and ours else ""
        print(f"  {operator:20} {mode:9} {'  '.join(parts)}{ratio}")


def judge(rows):
    """A goal is an upper bound of velo's time by a peer's, of another operator where it names
    one."""
    times = {(r["host"], r["operator"], r["mode"], r["contender"]): r["microseconds"] for r in rows}
    for goal in json.loads((FOLDER / "goals.json").read_text())["hosts"]:
        row = goal["row"]
        ours = times.get((row["host"], row["operator"], row["mode"], row["contender"]))
        peer = times.get((row["host"], goal.get("peer_operator",
                                                row["operator"]), row["mode"], goal["peer"]))
        if ours is not None and peer is not None:
            verdict = "reached" if ours / peer <= goal["bound"] else "NOT REACHED"
            print(f"{verdict:11} {goal['id']}: {ours / peer:.2f}, goal at most {goal['bound']:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default=",".join(HOSTS))
    parser.add_argument("--blocks", type=int, default=61)
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    parser.add_argument("--child", choices=HOSTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return serve(options)
    everything = []
    for host in options.hosts.split(","):
        rows = rows_of(host, options)
        everything += rows
        if options.json:
            print("\n".join(map(json.dumps, rows)))
        elif rows:
            table(rows)
            sys.stdout.flush()
    if not options.json:
        judge(everything)


if __name__ == "__main__":
    main()
