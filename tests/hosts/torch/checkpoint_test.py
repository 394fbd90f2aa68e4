"""A checkpoint of the main job, opened by transformers: the same weights, the same losses on the
same windows, the same text.

The run's learning rate is 0, so that the checkpoint holds the weights its logged losses were
computed with. Usage: checkpoint_test.py PRETRAIN
"""
import os
import subprocess
import tempfile

from main_job import PRETRAIN, SHAPE, loaded, mean_loss, require_near, run, steps_of, torch, \
    windows_of

STEPS = 3


def check_losses(directory):
    out = os.path.join(directory, "still")
    run(directory, *SHAPE, "--steps", str(STEPS), "--warmup", "0", "--learning_rate", "0", "--out",
        out, "--log", "log.jsonl", "--trace", "trace")
    losses = [line["loss"] for line in steps_of(directory)]
    model = loaded(os.path.join(out, "checkpoint"))
    windows = windows_of(directory, 1)
    assert len(losses) == len(windows) == STEPS
    for step, each in enumerate(windows):
        require_near(f"step {step}", losses[step], mean_loss(model, each), 1e-5)
    return len(losses)


def check_text(directory):
    out = os.path.join(directory, "trained")
    run(directory, *SHAPE, "--steps", "60", "--warmup", "5", "--learning_rate", "3e-3", "--out",
        out)
    checkpoint, prompt = os.path.join(out, "checkpoint"), "The "
    made = subprocess.run([
        PRETRAIN, "--generate", prompt, "--load", checkpoint, "--temperature", "0",
        "--sample_bytes", "24"
    ],
                          check=True,
                          capture_output=True).stdout.decode()
    model = loaded(checkpoint)
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
    run(directory, *SHAPE, "--steps", "1", "--warmup", "0", "--kv_share", "2", "--out", out)
    try:
        loaded(os.path.join(out, "checkpoint"))
    except ValueError as refusal:
        assert "llama_cla" in str(refusal), refusal
    else:
        raise AssertionError("transformers took a model with kv_share for one that it knows")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        check_refused(scratch)
        print(f"{check_losses(scratch)} losses equal; both continue: {check_text(scratch)!r}")
