#!/usr/bin/env python3
"""Trains one Llama-style model through velo and in torch, from the same weights on the same
windows, and compares tokens a second.

    bench_pretrain.py [--velo build/examples/pretrain/pretrain] [--bench build/bench/bench_ops]
        [--dtypes f32,bf16] [--threads 2]
                      [--steps 12] [--rounds 3] [--json]

Each round runs every trainer once, one after the other, so that a change of the machine's mood
meets all of them:
    velo             examples/pretrain
    torch shipped    torch 2.15 eager, as pip installs it
    torch tcmalloc   the same with tcmalloc preloaded, where it is installed (Debian:
                     libtcmalloc-minimal4)
    torch compiled   tcmalloc and torch.compile of the model's forward and loss
velo writes its initial weights, its windows and its learning rates (--trace, --log); torch trains
from those, and the losses of each step are compared, so that both are known to do the same work. In
bf16 torch keeps bf16 parameters beside f32 masters by hand and steps the masters with fused AdamW,
as velo does. The first two steps of each run are dropped; a figure is the median over all others of
a run, and of that the median over the rounds. velo's share of the roofline is what its log says.
"""
import argparse
import ctypes.util
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

MODEL = {"hidden": 512, "layers": 8, "heads": 8, "kv_heads": 4, "inner": 1408, "vocab": 260}
SEQUENCE, BATCH = 512, 8
TOKENS = SEQUENCE * BATCH
DROPPED = 2  # steps at the beginning of a run
FOLDER = pathlib.Path(__file__).resolve().parent


def step_flops():
    """6 x matrix parameters x tokens + 12 x layers x B x S x S x H / 2."""
    h, kv = MODEL["hidden"], MODEL["hidden"] // MODEL["heads"] * MODEL["kv_heads"]
    layer = h * (h + 2 * kv) + h * h + 3 * h * MODEL["inner"]
    matrices = MODEL["layers"] * layer + MODEL["vocab"] * h
    return 6 * matrices * TOKENS + 12 * MODEL["layers"] * BATCH * SEQUENCE * SEQUENCE * h / 2


# ---- torch: runs in a child process, one for each trainer and round ----


def read_safetensors(path, torch):
    raw = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, tensors = json.loads(raw[8 : 8 + length]), {}
    types = {"F32": torch.float32, "BF16": torch.bfloat16}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            data = torch.frombuffer(bytearray(raw[begin:end]), dtype=types[entry["dtype"]])
            tensors[name] = data.reshape(entry["shape"])
    return tensors


class Llama:
    """The model as a user writes it: one linear for each matrix, scaled_dot_product_attention,
    F.rms_norm."""

    def __init__(self, weights, torch):
        self.torch, self.F, self.w = torch, torch.nn.functional, weights
        width = MODEL["hidden"] // MODEL["heads"]
        angles = torch.arange(SEQUENCE)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.cos, self.sin = (torch.cat((f(angles), f(angles)), -1) for f in (torch.cos, torch.sin))

    def rotate(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos.to(x.dtype) + self.torch.cat((-b, a), -1) * self.sin.to(x.dtype)

    def norm(self, x, name):
        return self.F.rms_norm(x, (MODEL["hidden"],), self.w[name], 1e-5)

    def linear(self, x, name):
        return self.F.linear(x, self.w[name])

    def attention(self, x, prefix):
        heads = lambda t, n: t.view(BATCH, SEQUENCE, n, -1).transpose(1, 2)
        q = self.rotate(heads(self.linear(x, prefix + "q_proj.weight"), MODEL["heads"]))
        k = self.rotate(heads(self.linear(x, prefix + "k_proj.weight"), MODEL["kv_heads"]))
        v = heads(self.linear(x, prefix + "v_proj.weight"), MODEL["kv_heads"])
        out = self.F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.linear(
            out.transpose(1, 2).reshape(BATCH, SEQUENCE, -1), prefix + "o_proj.weight")

    def loss(self, inputs, targets):
        x = self.F.embedding(inputs, self.w["model.embed_tokens.weight"])
        for layer in range(MODEL["layers"]):
            at = f"model.layers.{layer}."
            x = x + self.attention(self.norm(x, at + "input_layernorm.weight"), at + "self_attn.")
            y = self.norm(x, at + "post_attention_layernorm.weight")
            gated = self.F.silu(self.linear(y, at + "mlp.gate_proj.weight")) * self.linear(
                y, at + "mlp.up_proj.weight")
            x = x + self.linear(gated, at + "mlp.down_proj.weight")
        logits = self.linear(self.norm(x, "model.norm.weight"), "lm_head.weight")
        return self.F.cross_entropy(logits.view(-1, MODEL["vocab"]).float(), targets.view(-1))


class Optimizer:
    """Clip to norm 1 and fused AdamW; for bf16 weights on f32 masters kept by hand."""

    def __init__(self, weights, torch):
        self.torch = torch
        self.weights = list(weights.values())
        narrow = self.weights[0].dtype == torch.bfloat16
        self.masters = [w.detach().float().requires_grad_() for w in self.weights
                       ] if narrow else self.weights
        decay = lambda wanted: [m for m in self.masters if (m.dim() > 1) == wanted]
        groups = [{"params": decay(True), "weight_decay": 0.1},
                  {"params": decay(False), "weight_decay": 0.0}]
        self.adamw = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8, fused=True)

    def step(self, rate):
        for group in self.adamw.param_groups:
            group["lr"] = rate
        apart = self.masters is not self.weights
        if apart:
            for master, weight in zip(self.masters, self.weights):
                master.grad = weight.grad.float()
        self.torch.nn.utils.clip_grad_norm_(self.masters, 1.0)
        self.adamw.step()
        if apart:
            with self.torch.no_grad():
                self.torch._foreach_copy_(self.weights, self.masters)
        for weight in self.weights:
            weight.grad = None


def train_torch(options):
    import torch

    torch.set_num_threads(options.threads)
    trace = pathlib.Path(options.trace)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[options.dtypes]
    loaded = read_safetensors(trace / "weights.safetensors", torch)
    weights = {name: tensor.to(dtype).requires_grad_() for name, tensor in loaded.items()}
    symbols = torch.frombuffer(bytearray((trace / "symbols.i32").read_bytes()), dtype=torch.int32)
    steps = symbols.view(-1, 2, BATCH, SEQUENCE).long()
    rates = [
        json.loads(line)["lr"]
        for line in (trace / "log.jsonl").read_text().splitlines()
        if "lr" in line
    ]
    model, optimizer = Llama(weights, torch), Optimizer(weights, torch)
    loss_of = torch.compile(model.loss) if options.compiled else model.loss
    for inputs, targets, rate in zip(steps[:, 0], steps[:, 1], rates):
        start = time.perf_counter()
        loss = loss_of(inputs, targets)
        loss.backward()
        optimizer.step(rate)
        value = loss.item()
        print(json.dumps({"loss": value, "seconds": time.perf_counter() - start}), flush=True)


# ---- the parent: runs all trainers in turn ----


def find_tcmalloc():
    for name in ("tcmalloc_minimal", "tcmalloc"):
        found = ctypes.util.find_library(name)
        if found:
            return found
    return None


def run(command, environment=None):
    done = subprocess.run(command,
                          env={**os.environ, **(environment or {})},
                          capture_output=True,
                          text=True)
    if done.returncode:
        sys.exit(
            f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def run_velo(options, dtype, trace):
    log = trace / "log.jsonl"
    settings = {
        **MODEL, "sequence": SEQUENCE, "batch": BATCH, "dtype": dtype, "threads": options.threads
    }
    settings.update(steps=1000,
                    stop_after=options.steps,
                    norm_epsilon=1e-5,
                    trace=trace,
                    log=log,
                    out=trace / "out")
    run([
        options.velo,
        *(word for key, value in settings.items() for word in (f"--{key}", str(value)))
    ])
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    steps = [step for step in steps if "loss" in step]
    roofline = statistics.median(step["roofline"] for step in steps[DROPPED:])
    return [step["loss"] for step in steps], [TOKENS / step["tokens_per_s"] for step in steps
                                             ], roofline


def run_torch(options, dtype, trace, words, environment):
    command = [options.python, __file__, "--child", "--trace", str(trace), "--dtypes", dtype]
    out = run([*command, "--threads", str(options.threads), *words], environment)
    steps = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return [step["loss"] for step in steps], [step["seconds"] for step in steps
                                             ], None  # of other operators


def trainers(options):
    yield "velo", lambda dtype, trace: run_velo(options, dtype, trace)
    if subprocess.run([options.python, "-c", "import torch"], capture_output=True).returncode:
        print(f"torch is absent from {options.python}: only velo is measured", file=sys.stderr)
        return
    tcmalloc = find_tcmalloc()
    preload = {"LD_PRELOAD": tcmalloc, "TCMALLOC_RELEASE_RATE": "0"} if tcmalloc else {}
    if not tcmalloc:
        print("tcmalloc is absent (Debian: libtcmalloc-minimal4)", file=sys.stderr)
    yield "torch shipped", lambda dtype, trace: run_torch(options, dtype, trace, [], {})
    if tcmalloc:
        yield "torch tcmalloc", lambda dtype, trace: run_torch(options, dtype, trace, [], preload)
    yield "torch compiled", lambda dtype, trace: run_torch(options, dtype, trace, ["--compiled"],
                                                           preload)


def peak_of(options, dtype):
    """The limit bench_ops measures for products of this dtype, in FLOP/s; and the CPU kind."""
    limits = json.loads(run([options.bench, "--limits"]))
    names = ("fma f32",) if dtype == "f32" else ("amx bf16", "dot bf16", "fma f32")
    return max(limits[name][options.threads - 1] for name in names) * 1e9, limits["cpu"]


def goals_of(section, dtype):
    return [
        goal for goal in json.loads((FOLDER / "goals.json").read_text())[section]
        if goal["dtype"] == dtype
    ]


def verdict(goal, value, bound):
    print(
        f"{'reached' if value >= bound else 'NOT REACHED':11} {goal['id']}: {value:.2f}, goal "
        f"{bound:.2f}"
    )


def judge(dtype, speeds, shares, cpu):
    """Prints which of goals.json's pretrain goals are reached; `shares` has velo's, by
    statistic."""
    others = {name: speed for name, speed in speeds.items() if name != "velo"}
    for goal in goals_of("pretrain", dtype):
        bound = goal["bound"].get(cpu) if isinstance(goal["bound"], dict) else goal["bound"]
        if bound is None:
            continue
        if "statistic" in goal:
            verdict(goal, shares[goal["statistic"]], bound)
        elif others:
            verdict(
                goal, speeds["velo"] /
                (max(others.values()) if goal["peer"] == "best" else others[goal["peer"]]), bound)


def compare(options, dtype):
    peak, cpu = peak_of(options, dtype)
    seconds, losses, rooflines = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder)
        for _ in range(options.rounds):
            for name, trainer in trainers(options):
                losses[name], times, roofline = trainer(dtype, trace)
                rooflines.setdefault(name, []).append(roofline)
                seconds.setdefault(name, []).append(statistics.median(times[DROPPED:]))
    speeds = {name: TOKENS / statistics.median(times) for name, times in seconds.items()}
    for name, speed in speeds.items():
        share = step_flops() * speed / TOKENS / peak
        apart = max(abs(a / b - 1) for a, b in zip(losses[name], losses["velo"]))
        row = {
            "trainer": name, "dtype": dtype, "threads": options.threads, "tokens_per_s": speed,
            "share": share
        }
        row.update(velo_ratio=speeds["velo"] / speed, loss_difference=apart)
        if name == "velo":
            row["roofline"] = statistics.median(rooflines[name])
            shares = {"share": share, "roofline": row["roofline"]}
        if options.json:
            print(json.dumps(row))
        else:
            bound = f" {100 * row['roofline']:.1f} % of the roofline;" if name == "velo" else ""
            print(
                f"{dtype:4} {name:15} {speed:9.0f} tokens/s {100 * share:5.1f} % of "
                f"{peak / 1e9:.0f} GFLOP/s;{bound} "
                f"velo is {row['velo_ratio']:.2f}x; losses within {apart:.1e}")
        if not apart < (1e-3 if dtype == "f32" else 5e-2):
            sys.exit(f"{name}: the losses differ from velo's: not the same training")
    judge(dtype, speeds, shares, cpu)


def main():
    build = FOLDER.parent / "build"
    venv = FOLDER.parent / ".venv" / "bin" / "python"
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--velo",
                        default=str(build / "examples/pretrain/pretrain"),
                        help="the pretrain program")
    parser.add_argument("--bench",
                        default=str(build / "bench/bench_ops"),
                        help="the bench_ops program, for the limits")
    parser.add_argument("--python",
                        default=str(venv) if venv.exists() else sys.executable,
                        help="the one with torch")
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--threads", type=int, default=2, choices=(1, 2))
    parser.add_argument("--steps", type=int, default=12, help="steps of a run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object a trainer")
    for hidden in ("--child", "--compiled"):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--trace", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        train_torch(options)
        return
    if options.steps <= DROPPED:
        parser.error(f"--steps must exceed {DROPPED}")
    for dtype in options.dtypes.split(","):
        compare(options, dtype)


if __name__ == "__main__":
    main()
