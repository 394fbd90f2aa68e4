"""A checkpoint of the main job, opened by transformers: the same weights, the same losses on the
same windows, the same text.

The run's learning rate is 0, so that the checkpoint holds the weights its logged losses were
computed with. Usage: checkpoint_test.py PRETRAIN
"""
import array
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "parity"))

from frameworks import torch  # noqa: E402

try:
    from transformers import AutoModelForCausalLM
except ImportError as missing:
    print(f"not tested: checkpoints in transformers: {missing}")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)

PRETRAIN, SEQUENCE, BATCH, STEPS = sys.argv[1], 64, 4, 3


def run(directory, *options):
    command = [
        PRETRAIN, "--hidden", "64", "--layers", "2", "--heads", "4", "--kv_heads", "2", "--inner",
        "176", "--dtype", "f32", "--sequence",
        str(SEQUENCE), "--batch",
        str(BATCH), "--validation_bytes", "4096", "--sample_bytes", "0", *options
    ]
    return subprocess.run(command, check=True, capture_output=True, cwd=directory)


def check_losses(directory):
    out = os.path.join(directory, "still")
    run(directory, "--steps", str(STEPS), "--warmup", "0", "--learning_rate", "0", "--out", out,
        "--log", "log.jsonl", "--trace", "trace")
    with open(os.path.join(directory, "log.jsonl"), encoding="utf-8") as file:
        losses = [line["loss"] for line in map(json.loads, file) if "loss" in line]
    symbols = array.array("i")
    with open(os.path.join(directory, "trace", "symbols.i32"), "rb") as file:
        symbols.frombytes(file.read())
    windows = torch.tensor(symbols, dtype=torch.int64).view(STEPS, 2, BATCH, SEQUENCE)
    model = AutoModelForCausalLM.from_pretrained(os.path.join(out, "checkpoint"),
                                                 dtype=torch.float32)
    for step, (inputs, targets) in enumerate(windows):
        with torch.no_grad():
            logits = model(input_ids=inputs).logits
        loss = float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()))
        assert abs(loss - losses[step]
                  ) <= 1e-5 * loss, f"step {step}: {losses[step]} here, {loss} in transformers"
    return len(losses)


def check_text(directory):
    out = os.path.join(directory, "trained")
    run(directory, "--steps", "60", "--warmup", "5", "--learning_rate", "3e-3", "--out", out)
    checkpoint, prompt = os.path.join(out, "checkpoint"), "The "
    made = subprocess.run([
        PRETRAIN, "--generate", prompt, "--load", checkpoint, "--temperature", "0",
        "--sample_bytes", "24"
    ],
                          check=True,
                          capture_output=True).stdout.decode()
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    config = model.config
    symbols = ([config.bos_token_id] if config.bos_token_id is not None else []) + list(
        prompt.encode())
    with torch.no_grad():
        for _ in range(24):
            symbols.append(
                int(model(input_ids=torch.tensor([symbols])).logits[0, -1, :256].argmax()))
    text = bytes(s for s in symbols if s < 256).decode(errors="replace")
    assert text.strip() in made, f"transformers goes on with {text!r}, pretrain printed {made!r}"
    return text


def check_refused(directory):
    """A model that lacks keys and values in some layers is no Llama."""
    out = os.path.join(directory, "shared")
    run(directory, "--steps", "1", "--warmup", "0", "--kv_share", "2", "--out", out)
    try:
        AutoModelForCausalLM.from_pretrained(os.path.join(out, "checkpoint"))
    except ValueError as refusal:
        assert "llama_cla" in str(refusal), refusal
    else:
        raise AssertionError("transformers took a model with kv_share for one that it knows")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        check_refused(scratch)
        print(f"{check_losses(scratch)} losses equal; both continue: {check_text(scratch)!r}")
