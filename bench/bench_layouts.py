#!/usr/bin/env python3
"""Trains two models on two ranks in several layouts, and compares tokens a second: one in Llama's
style, one in Mixtral's, with experts in its layers.

    bench_layouts.py [--velo build/examples/pretrain/pretrain] [--dtypes f32,bf16]
        [--transport local] [--steps 8] [--rounds 3] [--json]

The peer of each row is data parallelism of the same model: the same two ranks of one thread with
the same windows, each of which has the whole model and half of the windows. Every round runs each
layout once, in turn. The first two steps of a run are dropped; a figure is the median over the
rounds of the median over a run. Losses of all layouts must agree, so that they do the same work.
Goals: goals.json, layouts.
"""
import argparse
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from render_results import judge

FOLDER = pathlib.Path(__file__).resolve().parent
DENSE = {"hidden": 512, "layers": 8, "heads": 8, "kv_heads": 4, "inner": 1408, "vocab": 260}
MIXTURE = {"hidden": 512, "layers": 4, "heads": 8, "kv_heads": 4, "vocab": 260, "experts": 16,
           "experts_per_token": 2, "expert_inner": 704, "balance_loss": 0.01}
SEQUENCE, BATCH = 2048, 2
DROPPED = 2  # steps at the beginning of a run
# The first layout of a model is the peer of the others.
LAYOUTS = (
    {"dp 2": DENSE,
     "tp 2": {**DENSE, "tp": 2},
     "tp 2, rows shared": {**DENSE, "tp": 2, "sequence_parallel": "true"},
     "cp 2 ring": {**DENSE, "cp": 2, "cp_algorithm": "ring"},
     "cp 2 ulysses": {**DENSE, "cp": 2, "cp_algorithm": "ulysses"}},
    {"dp 2, experts": MIXTURE,
     "ep 2": {**MIXTURE, "ep": 2},
     "tp 2, ep 2": {**MIXTURE, "tp": 2, "ep": 2, "sequence_parallel": "true"}},
)


def train(options, dtype, layout):
    """Losses and tokens a second of each step."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log.jsonl"
        settings = {**layout, "sequence": SEQUENCE, "batch": BATCH, "dtype": dtype,
                    "ranks": 2, "threads": 1, "transport": options.transport, "steps": 1000,
                    "stop_after": options.steps, "log": log, "out": pathlib.Path(folder) / "out"}
        command = [options.velo, *(f"--{key}={value}" for key, value in settings.items())]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        steps = [json.loads(line) for line in log.read_text().splitlines()]
    steps = [step for step in steps if "loss" in step]
    return [step["loss"] for step in steps], [step["tokens_per_s"] for step in steps]


def compare(options, dtype, layouts):
    """A row for each layout beside the first one."""
    speeds, losses = {}, {}
    for _ in range(options.rounds):
        for name, layout in layouts.items():
            losses[name], rates = train(options, dtype, layout)
            speeds.setdefault(name, []).append(statistics.median(rates[DROPPED:]))
    medians = {name: statistics.median(all) for name, all in speeds.items()}
    (peer, base), *others = medians.items()
    for name, speed in others:
        apart = max(abs(a / b - 1) for a, b in zip(losses[name], losses[peer]))
        if not apart < (1e-3 if dtype == "f32" else 5e-2):
            sys.exit(f"{name}: losses differ from those of {peer} by {apart:.1e}: not the same "
                     "training")
        yield {"name": "training", "dtype": dtype, "shape": name, "threads": 2,
               "unit": "tokens/s", "velo": speed, "peer_name": peer, "peer": base,
               "ratio": speed / base, "loss_difference": apart}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--velo", default=str(FOLDER.parent / "build/examples/pretrain/pretrain"),
                        help="the pretrain program")
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--transport", default="local", choices=("local", "shm"))
    parser.add_argument("--steps", type=int, default=8, help="steps of a run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    options = parser.parse_args()
    if options.steps <= DROPPED:
        parser.error(f"--steps must exceed {DROPPED}")
    rows = []
    for dtype, layouts in itertools.product(options.dtypes.split(","), LAYOUTS):
        for row in compare(options, dtype, layouts):
            rows.append(row)
            print(json.dumps(row) if options.json else
                  f"{dtype:4} {row['shape']:18} {row['velo']:9.0f} tokens/s, {row['ratio']:.2f} of "
                  f"{row['peer_name']}; losses within {row['loss_difference']:.1e}", flush=True)
    if not options.json:
        judge("layouts", rows)


if __name__ == "__main__":
    main()
