"""The main job and transformers side by side: a run of pretrain, its log, its windows, and the loss
that a model of transformers has on them."""
import array
import json
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "parity"))

from frameworks import torch  # noqa: E402

try:
    import transformers
except ImportError as missing:
    print(f"not tested: the main job beside transformers: {missing}")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)

PRETRAIN, SEQUENCE, BATCH = sys.argv[1], 64, 4
SHAPE = ("--hidden", "64", "--layers", "2", "--heads", "4", "--kv_heads", "2", "--inner", "176",
         "--dtype", "f32")


def run(directory, *options):
    """Runs pretrain there, on windows that do not depend on the layout."""
    command = [
        PRETRAIN, "--sequence",
        str(SEQUENCE), "--batch",
        str(BATCH), "--validation_bytes", "4096", "--sample_bytes", "0", "--measure", "false",
        *options
    ]
    done = subprocess.run(command, check=False, capture_output=True, cwd=directory)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.decode()}"
    return done


def steps_of(directory, log="log.jsonl"):
    """The lines of a log that are steps."""
    with open(os.path.join(directory, log), encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if "loss" in line]


def windows_of(directory, micro_batches, trace="trace"):
    """Inputs and targets of a trace: [step, micro-batch, 2, batch, sequence]."""
    symbols = array.array("i")
    with open(os.path.join(directory, trace, "symbols.i32"), "rb") as file:
        symbols.frombytes(file.read())
    return torch.tensor(symbols, dtype=torch.int64).view(-1, micro_batches, 2, BATCH, SEQUENCE)


def loss_of(model, inputs, targets):
    logits = model(input_ids=inputs).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def mean_loss(model, windows):
    """Of a step's micro-batches, without gradients."""
    with torch.no_grad():
        return sum(float(loss_of(model, *each)) for each in windows) / len(windows)


def require_near(what, found, expected, most):
    assert abs(found - expected) <= most * abs(expected), (
        f"{what}: {found} in pretrain, {expected} in transformers")


def loaded(checkpoint, dtype=torch.float32):
    return transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=dtype)
