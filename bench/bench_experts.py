#!/usr/bin/env python3
"""Trains one Mixtral through velo and in transformers, from the same weights on the same windows,
and compares tokens a second.

    bench_experts.py [--velo build/examples/pretrain/pretrain] [--python .venv-hosts/bin/python]
        [--dtypes f32,bf16] [--threads 2] [--steps 8] [--rounds 2] [--json]

The peers are the implementations of experts that transformers has for a CPU: eager (a loop over
the experts), grouped_mm (torch's grouped product of rows sorted by expert), and each of these with
torch.compile of the forward pass and loss. Every round runs each trainer once, in turn. Weights,
windows and learning rates are velo's (--trace, --log); optimizers are those of bench_pretrain.py.
The first steps of a run are dropped; a figure is the median over the rounds of the median over a
run. Losses must agree, so that all do the same work. A peer that torch cannot run is named and left
out. Goals: goals.json, experts.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from bench_pretrain import Optimizer, read_safetensors, run
from render_results import judge

FOLDER = pathlib.Path(__file__).resolve().parent
MODEL = {"hidden": 512, "layers": 4, "heads": 8, "kv_heads": 4, "vocab": 260, "experts": 16,
         "experts_per_token": 2, "expert_inner": 704, "balance_loss": 0}
SEQUENCE, BATCH = 512, 4
TOKENS = SEQUENCE * BATCH
SHAPE = "16 experts, top-2, 4x512"
DROPPED = 3  # steps at the beginning of a run: those of torch.compile among them
PEERS = tuple((name, compiled) for compiled in (False, True) for name in ("eager", "grouped_mm"))


def merged(tensors, torch):
    """Weights by the names of transformers' modules, which have the experts of a layer together."""
    made, experts = {}, {}
    for name, tensor in tensors.items():
        found = re.fullmatch(r"(.*)\.block_sparse_moe\.experts\.(\d+)\.(w[123])\.weight", name)
        if found:
            experts.setdefault(found[1], {})[found[3], int(found[2])] = tensor
        else:
            made[name.replace("block_sparse_moe.gate", "mlp.gate")] = tensor
    for layer, of in experts.items():
        every = range(MODEL["experts"])
        made[f"{layer}.mlp.experts.gate_up_proj"] = torch.stack(
            [torch.cat((of["w1", e], of["w3", e])) for e in every])
        made[f"{layer}.mlp.experts.down_proj"] = torch.stack([of["w2", e] for e in every])
    return made


def mixtral(options, torch):
    """transformers' model with the weights of the trace."""
    import transformers

    trace = pathlib.Path(options.trace)
    config = transformers.AutoConfig.from_pretrained(trace / "out" / "checkpoint")
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[options.dtypes]
    model = transformers.AutoModelForCausalLM.from_config(
        config, experts_implementation=options.implementation).to(dtype)
    start = merged(read_safetensors(trace / "weights.safetensors", torch), torch)
    missing, unexpected = model.load_state_dict({n: t.to(dtype) for n, t in start.items()},
                                                strict=False)
    if missing or unexpected:
        sys.exit(f"weights of the trace: missing {missing}, unexpected {unexpected}")
    return model


def train_torch(options):
    import torch

    torch.set_num_threads(options.threads)
    trace = pathlib.Path(options.trace)
    symbols = torch.frombuffer(bytearray((trace / "symbols.i32").read_bytes()), dtype=torch.int32)
    steps = symbols.view(-1, 2, BATCH, SEQUENCE).long()
    rates = [json.loads(line)["lr"] for line in (trace / "log.jsonl").read_text().splitlines()
             if "lr" in line]
    model = mixtral(options, torch)

    def loss_of(inputs, targets):
        logits = model(input_ids=inputs, use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    call = torch.compile(loss_of) if options.compiled else loss_of
    optimizer = Optimizer(dict(model.named_parameters()), torch)
    for inputs, targets, rate in zip(steps[:, 0], steps[:, 1], rates):
        start = time.perf_counter()
        loss = call(inputs, targets)
        loss.backward()
        optimizer.step(rate)
        value = loss.item()
        print(json.dumps({"loss": value, "seconds": time.perf_counter() - start}), flush=True)


def run_velo(options, dtype, trace):
    log = trace / "log.jsonl"
    settings = {**MODEL, "sequence": SEQUENCE, "batch": BATCH, "dtype": dtype,
                "threads": options.threads, "steps": 1000, "stop_after": options.steps,
                "norm_epsilon": 1e-5, "trace": trace, "log": log, "out": trace / "out"}
    run([options.velo, *(f"--{key}={value}" for key, value in settings.items())])
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    steps = [step for step in steps if "loss" in step]
    return [step["loss"] for step in steps], [TOKENS / step["tokens_per_s"] for step in steps]


def run_torch(options, dtype, trace, implementation, compiled):
    """Losses and seconds of each step, or why torch cannot run this peer."""
    command = [options.python, __file__, "--child", "--trace", str(trace), "--dtypes", dtype,
               "--implementation", implementation, "--threads", str(options.threads)]
    done = subprocess.run(command + ["--compiled"] * compiled, env=os.environ, capture_output=True,
                          text=True)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1]
    steps = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [step["loss"] for step in steps], [step["seconds"] for step in steps]


def measure(options, dtype):
    """By trainer: the losses, and the tokens a second of each round."""
    losses, speeds, absent = {}, {}, set()
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder)
        for _ in range(options.rounds):
            losses["velo"], times = run_velo(options, dtype, trace)
            speeds.setdefault("velo", []).append(TOKENS / statistics.median(times[DROPPED:]))
            for implementation, compiled in PEERS:
                name = implementation + (" compiled" if compiled else "")
                if name in absent:
                    continue
                found, times = run_torch(options, dtype, trace, implementation, compiled)
                if found is None:
                    print(f"{dtype} {name}: left out: {times}", file=sys.stderr)
                    absent.add(name)
                    continue
                losses[name] = found
                speeds.setdefault(name, []).append(TOKENS / statistics.median(times[DROPPED:]))
    return losses, {name: statistics.median(all) for name, all in speeds.items()}


def compare(options, dtype):
    """A row for each peer."""
    losses, speeds = measure(options, dtype)
    for name, speed in speeds.items():
        if name == "velo":
            continue
        apart = max(abs(a / b - 1) for a, b in zip(losses[name], losses["velo"]))
        if not apart < (1e-3 if dtype == "f32" else 5e-2):
            sys.exit(f"{name}: losses differ from velo's by {apart:.1e}: not the same training")
        yield {"name": "mixtral step", "dtype": dtype, "shape": SHAPE, "threads": options.threads,
               "unit": "tokens/s", "velo": speeds["velo"], "peer_name": name, "peer": speed,
               "ratio": speeds["velo"] / speed, "loss_difference": apart}


def arguments():
    venv = FOLDER.parent / ".venv-hosts" / "bin" / "python"
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--velo", default=str(FOLDER.parent / "build/examples/pretrain/pretrain"),
                        help="the pretrain program")
    parser.add_argument("--python", default=str(venv) if venv.exists() else sys.executable,
                        help="the one with torch and transformers")
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--threads", type=int, default=2, choices=(1, 2))
    parser.add_argument("--steps", type=int, default=8, help="steps of a run")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    for hidden in ("--child", "--compiled"):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    for hidden in ("--trace", "--implementation"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.child and options.steps <= DROPPED:
        parser.error(f"--steps must exceed {DROPPED}")
    return options


def main():
    options = arguments()
    if options.child:
        train_torch(options)
        return
    rows = []
    for dtype in options.dtypes.split(","):
        for row in compare(options, dtype):
            rows.append(row)
            print(json.dumps(row) if options.json else
                  f"{dtype:4} velo {row['velo']:7.0f} tokens/s, {row['ratio']:.2f} of "
                  f"{row['peer_name']} ({row['peer']:.0f}); losses within "
                  f"{row['loss_difference']:.1e}", flush=True)
    if not options.json:
        judge("experts", rows)


if __name__ == "__main__":
    main()
