"""The main job's --trace repeated by transformers' Llama in double: 20 steps of torch's AdamW from
the trace's weights on the trace's windows.

Losses and gradient norms of all steps must be within 1e-4, the first gradients within 1e-5
(norm-wise). transformers computes norms and the rotary table in float32 whatever the model's type.
Usage: trace_test.py PRETRAIN
"""
import os
import tempfile

from main_job import (SHAPE, loss_of, require_near, run, steps_of, torch, transformers,
                      windows_of)
from safetensors.torch import load_file

STEPS, MICRO_BATCHES, WEIGHT_DECAY, CLIP = 20, 2, 0.1, 2.0
BETAS, EPSILON = (0.9, 0.95), 1e-8


def traced(directory, tied):
    """A run; its steps, and the model of transformers with the weights it started from."""
    out, trace = os.path.join(directory, "out"), os.path.join(directory, "trace")
    run(directory, *SHAPE, "--tied", tied, "--accumulation", str(MICRO_BATCHES), "--steps",
        str(STEPS), "--warmup", "4", "--learning_rate", "3e-3", "--beta1", str(BETAS[0]), "--beta2",
        str(BETAS[1]), "--epsilon", str(EPSILON), "--weight_decay", str(WEIGHT_DECAY), "--clip",
        str(CLIP), "--out", out, "--log", "log.jsonl", "--trace", trace)
    config = transformers.AutoConfig.from_pretrained(os.path.join(out, "checkpoint"))
    model = transformers.LlamaForCausalLM(config).double()
    start = {name: tensor.double() for name, tensor in
             load_file(os.path.join(trace, "weights.safetensors")).items()}
    missing, unexpected = model.load_state_dict(start, strict=False)
    assert not unexpected and missing == (["lm_head.weight"] if config.tie_word_embeddings else [])
    return steps_of(directory), model


def require_first_gradients(directory, model):
    """Those of the trace, each within 1e-5 of its norm."""
    gradients = load_file(os.path.join(directory, "trace", "gradients.safetensors"))
    named = dict(model.named_parameters())
    assert set(gradients) == set(named), set(gradients) ^ set(named)
    worst = 0.0
    for name, tensor in named.items():
        far = float((gradients[name] - tensor.grad).norm() / tensor.grad.norm())
        assert far <= 1e-5, f"first gradient of {name} is {far:.2e} away"
        worst = max(worst, far)
    return worst


def check(directory, tied):
    lines, model = traced(directory, tied)
    windows = windows_of(directory, MICRO_BATCHES)
    assert len(lines) == len(windows) == STEPS, (len(lines), len(windows))
    matrices = [t for t in model.parameters() if t.dim() == 2]
    gains = [t for t in model.parameters() if t.dim() == 1]
    adamw = torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY},
                               {"params": gains, "weight_decay": 0.0}], betas=BETAS, eps=EPSILON)
    worst = {"loss": 0.0, "grad_norm": 0.0}
    clipped = 0
    for step, line in enumerate(lines):
        adamw.zero_grad()
        found = {"loss": 0.0}
        for inputs, targets in windows[step]:
            loss = loss_of(model, inputs, targets) / MICRO_BATCHES
            loss.backward()
            found["loss"] += float(loss.detach())
        if step == 0:
            gradient = require_first_gradients(directory, model)
        for group in adamw.param_groups:
            group["lr"] = line["lr"]
        found["grad_norm"] = float(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP))
        clipped += found["grad_norm"] > CLIP
        adamw.step()
        for key, value in found.items():
            require_near(f"step {step}: {key}", line[key], value, 1e-4)
            worst[key] = max(worst[key], abs(line[key] - value) / value)
    assert lines[-1]["loss"] < 0.8 * lines[0]["loss"], "the model did not learn"
    assert 0 < clipped < STEPS, f"{clipped} of {STEPS} steps were clipped"
    print(f"tied {tied}, {STEPS} steps, {clipped} clipped: losses within {worst['loss']:.1e}, "
          f"norms within {worst['grad_norm']:.1e}, first gradients within {gradient:.1e}")


if __name__ == "__main__":
    for choice in ("false", "true"):
        with tempfile.TemporaryDirectory() as scratch:
            check(scratch, choice)
