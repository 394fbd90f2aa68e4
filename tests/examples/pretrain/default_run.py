#!/usr/bin/env python3
"""The main job as the README first runs it: as many steps as it says, and a model that needs fewer
bits a byte than zlib -9.

    default_run.py PRETRAIN

Takes what a user's first run takes: about two minutes on two cores.
"""
import json
import os
import subprocess
import sys
import tempfile

KEYS = [
    "step", "loss", "lr", "grad_norm", "tokens_per_s", "flops_per_s", "mfu", "roofline", "elapsed_s"
]

with tempfile.TemporaryDirectory() as folder:
    log = os.path.join(folder, "log.jsonl")
    subprocess.run([sys.argv[1], "--ranks", "2", "--out", folder, "--log", log], check=True)
    with open(log, encoding="utf-8") as file:
        *steps, last = [json.loads(line) for line in file]
    assert len(steps) == 200 and all(
        list(line) == KEYS for line in steps), f"{len(steps)} steps: {steps[0]}"
    assert os.path.getsize(os.path.join(folder, "loss.svg")) > 0
    bits, zlib = last["val_bits_per_byte"], last["zlib_bits_per_byte"]
    assert bits < 0.75 * zlib, f"{bits} bits a byte, zlib -9 needs {zlib}"
