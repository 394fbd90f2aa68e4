#!/usr/bin/env python3
"""Tokens a second of an unmodified transformers model in training: as torch runs it, and after
velo.torch.enable(model).

    bench_torch_enable.py [--threads 2] [--dtype f32] [--rounds 3] [--steps 2] [--trainers ..]
        [--json]
    bench_torch_enable.py --grid [--hidden 64,256,512,1024] [--work training,prefill,decode]
        [--dtype f32] [--threads 2]
                          [--seconds 20]

The model is LlamaForCausalLM of bench_pretrain's size with random weights; a step is forward,
backward and torch.optim.AdamW. Each trainer lives in a process of its own and waits while another
one works; a round lets every one of them take `steps` steps, so that a change of the machine's mood
meets all of them, and compiling is paid once:
    stock eager      torch and transformers as pip installs them
    stock compiled   the same model through torch.compile
    velo             velo.torch.enable(model), eager
    velo level 1     the same with level=1
    velo compiled    velo.torch.enable(model) through torch.compile
All start from the same weights and see the same symbols, so their losses must agree; in bf16 only
about, since velo.torch.AdamW keeps f32 masters and moments where torch's has bf16 ones. The first
two steps of each are dropped, and the first after a wait, which finds its memory gone cold; a
figure is the median over all others. "others" is what processes that do not belong to the
measurement used of the machine: with more than 0.1 processors it is none.

--grid: that enabling never loses, on small models (enable_grid.py); below 0.98x in a cell the
program fails. VELO_LIBRARY and VELO_ADAPTERS name the libraries, else the build's are taken.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import enable_grid
from bench_pretrain import BATCH, DROPPED, FOLDER, MODEL, SEQUENCE, TOKENS, goals_of, verdict

BUILT = {
    "VELO_LIBRARY": str(FOLDER.parent / "build" / "capi" / "libvelo.so.1"),
    "VELO_ADAPTERS": str(FOLDER.parent / "build" / "capi" / "adapters" / "libvelo_adapters.so.1")
}
AGREE = {"f32": 1e-3, "bf16": 5e-2}  # relative difference of losses that still is the same training


# ---- one trainer: a child process that takes a step for each line it is sent ----


def make_model(dtype, torch, size=MODEL, cache=False):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=size["hidden"],
                         num_hidden_layers=size["layers"],
                         intermediate_size=size["inner"],
                         num_attention_heads=size["heads"],
                         num_key_value_heads=size["kv_heads"],
                         vocab_size=size["vocab"],
                         max_position_embeddings=SEQUENCE,
                         use_cache=cache,
                         pad_token_id=None,
                         eos_token_id=None)
    return LlamaForCausalLM(config).to({"f32": torch.float32,
                                        "bf16": torch.bfloat16}[dtype]).train()


def serve(options):
    import torch

    torch.set_num_threads(options.threads)
    model = make_model(options.dtype, torch)
    enable_here(options, model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    step_of = torch.compile(model) if options.child.endswith("compiled") else model
    symbols = torch.Generator().manual_seed(1)
    for _ in sys.stdin:
        ids = torch.randint(0, MODEL["vocab"], (BATCH, SEQUENCE), generator=symbols)
        start, worked = time.perf_counter(), time.process_time()
        loss = step_of(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        answer = {
            "loss": value, "seconds": time.perf_counter() - start,
            "worked": time.process_time() - worked
        }
        print(json.dumps(answer), flush=True)


def enable_here(options, model):
    if options.child.startswith("velo"):
        sys.path.insert(0, str(FOLDER.parent / "capi" / "python"))
        import velo.torch

        velo.torch.enable(model, level=1 if options.child.endswith("level 1") else 2)


def busy():
    """Seconds that the machine's processors have worked for anyone."""
    ticks = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]
    user, nice, system, _idle, _waiting, *interrupts = map(int, ticks)
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


class Trainer:
    def __init__(self, name, options):
        self.losses, self.seconds, self.others = [], [], []
        command = [
            sys.executable, __file__, "--child", name, "--dtype", options.dtype, "--threads",
            str(options.threads)
        ]
        self.process = subprocess.Popen(command,
                                        stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE,
                                        text=True,
                                        env={**BUILT, **os.environ})

    def step(self, counts):
        before = busy()
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{' '.join(self.process.args)}: ended with exit code {self.process.wait()}")
        answer = json.loads(line)
        self.losses.append(answer["loss"])
        if not counts:
            return
        self.seconds.append(answer["seconds"])
        self.others.append((busy() - before - answer["worked"]) / answer["seconds"])

    def tokens_per_s(self):
        return TOKENS / statistics.median(self.seconds)


# ---- the parent ----


def train_in_turn(options):
    trainers = {name: Trainer(name, options) for name in options.trainers.split(",")}
    for turn in range(options.rounds):
        for trainer in trainers.values():
            dropped = DROPPED if turn == 0 else 1
            for step in range(dropped + options.steps):
                trainer.step(counts=step >= dropped)
    for trainer in trainers.values():
        trainer.process.stdin.close()
        trainer.process.wait()
    return trainers


def report(options, trainers):
    stock = next(iter(trainers.values()))
    for name, trainer in trainers.items():
        speed, ratio = trainer.tokens_per_s(), trainer.tokens_per_s() / stock.tokens_per_s()
        apart = max(abs(a / b - 1) for a, b in zip(trainer.losses, stock.losses))
        row = {
            "trainer": name, "dtype": options.dtype, "threads": options.threads,
            "tokens_per_s": speed, "ratio": ratio, "loss_difference": apart,
            "others": statistics.mean(trainer.others)
        }
        if options.json:
            print(json.dumps(row))
        else:
            print(
                f"{options.dtype:4} {options.threads}T {name:15} {speed:8.0f} tokens/s  "
                f"{ratio:5.2f}x {next(iter(trainers))}; "
                f"losses within {apart:.1e}; others used {row['others']:.1f} processors")
        if not apart < AGREE[options.dtype]:
            sys.exit(f"{name}: the losses differ from stock's: not the same training")
    for goal in goals_of("enable", options.dtype):
        if goal["threads"] == options.threads and {goal["trainer"], goal["peer"]
                                                  } <= trainers.keys():
            verdict(
                goal,
                trainers[goal["trainer"]].tokens_per_s() / trainers[goal["peer"]].tokens_per_s(),
                goal["bound"])


def grid(options):
    """enable_grid.py's cells; the process fails where one is below its floor."""
    os.environ.update({**BUILT, **os.environ})
    sys.path.insert(0, str(FOLDER.parent / "capi" / "python"))
    import torch
    import velo.torch
    from velo.torch import dispatcher

    if not dispatcher.by_adapter:
        print(f"every call goes by ctypes: {dispatcher.why_not}")
    lost = enable_grid.run(torch, velo.torch.enable, make_model, options)
    if lost:
        sys.exit(f"enabling loses: {', '.join(lost)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", default="f32", choices=("f32", "bf16"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--hidden", default="64,256,512,1024", help="of --grid")
    parser.add_argument("--work", default="training,prefill,decode", help="of --grid")
    parser.add_argument("--seconds", type=float, default=20, help="of --grid: for a cell at most")
    parser.add_argument("--steps",
                        type=int,
                        default=2,
                        help="steps of a trainer that count in a round")
    parser.add_argument("--trainers",
                        default="stock eager,stock compiled,velo,velo level 1,velo compiled",
                        help="which to run; ratios are to the first")
    parser.add_argument("--json", action="store_true", help="one JSON object a trainer")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        serve(options)
    elif options.grid:
        grid(options)
    else:
        report(options, train_in_turn(options))


if __name__ == "__main__":
    main()
