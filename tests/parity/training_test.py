"""The main job against torch: 50 steps in float32 from equal weights and equal windows.

pretrain leaves its initial weights, first gradients and symbols in a trace directory and its losses
in a log; the same Llama-style decoder in torch, trained from them with torch's own AdamW, must have
every first gradient within 1e-5 (norm-wise) and every step's loss within 1e-4 (relative): with one
text, with lines as documents, of which none sees another, and with layers that share keys and
values. Usage: training_test.py PRETRAIN
"""
import array
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

from frameworks import torch

F = torch.nn.functional
PRETRAIN = sys.argv[1]
STEPS, HIDDEN, LAYERS, HEADS, KV_HEADS, INNER = 50, 64, 2, 4, 2, 176
VOCAB, SEQUENCE, BATCH, MICRO_BATCHES = 260, 64, 4, 2
BOS, NOT_COUNTED = 256, -100
THETA, NORM_EPSILON, WEIGHT_DECAY, CLIP = 10000.0, 1e-5, 0.1, 1.0


def safetensors(path):
    """Name -> float32 tensor of a safetensors file."""
    with open(path, "rb") as file:
        content = file.read()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", entry
        begin, end = entry["data_offsets"]
        data = torch.frombuffer(bytearray(content[8 + size + begin:8 + size + end]),
                                dtype=torch.float32)
        tensors[name] = data.reshape(entry["shape"])
    return tensors


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def forward(w, symbols, kv_share):
    """Logits of [batch, sequence] symbols; Hugging Face's Llama with its weight names. Each BOS
    begins a document, at position 0. A layer whose number kv_share divides uses the last keys and
    values."""
    batch, length = symbols.shape
    width = HIDDEN // HEADS
    places = torch.arange(length)
    begins = symbols == BOS
    position = places - torch.where(begins, places, 0).cummax(-1).values
    frequency = THETA ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = (position[..., None] * frequency)[:, None]
    cos, sin = (torch.cat((t, t), -1).float() for t in (angle.cos(), angle.sin()))
    document = begins.cumsum(-1)
    hidden = (document[:, :, None] != document[:, None, :]) | (places[:, None] < places)
    mask = torch.zeros(hidden.shape).masked_fill(hidden, float("-inf"))[:, None]

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + NORM_EPSILON) * w[name]

    x = F.embedding(symbols, w["model.embed_tokens.weight"])
    for layer in range(LAYERS):
        p = f"model.layers.{layer}."

        def heads(t, name, count):
            return F.linear(t, w[f"{p}self_attn.{name}_proj.weight"]).view(
                batch, length, count, width).transpose(1, 2)

        h = norm(x, p + "input_layernorm.weight")
        if kv_share == 0 or (layer + 1) % kv_share:
            keys, v = heads(h, "k", KV_HEADS), heads(h, "v", KV_HEADS)
        q, k = rotate(heads(h, "q", HEADS), cos, sin), rotate(keys, cos, sin)
        k, value = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
        mixed = (q @ k.transpose(-1, -2) / math.sqrt(width) + mask).softmax(-1) @ value
        x = x + F.linear(
            mixed.transpose(1, 2).reshape(batch, length, HIDDEN), w[p + "self_attn.o_proj.weight"])
        h = norm(x, p + "post_attention_layernorm.weight")
        gated = F.silu(F.linear(h, w[p + "mlp.gate_proj.weight"])) * F.linear(
            h, w[p + "mlp.up_proj.weight"])
        x = x + F.linear(gated, w[p + "mlp.down_proj.weight"])
    return F.linear(norm(x, "model.norm.weight"), w["lm_head.weight"])


def run_pretrain(directory, documents, kv_share):
    """Runs the main job; its log lines and trace directory."""
    log, trace = os.path.join(directory, "log.jsonl"), os.path.join(directory, "trace")
    settings = {
        "hidden": HIDDEN, "layers": LAYERS, "heads": HEADS, "kv_heads": KV_HEADS, "inner": INNER,
        "vocab": VOCAB, "dtype": "f32", "rope_theta": THETA, "norm_epsilon": NORM_EPSILON,
        "sequence": SEQUENCE, "batch": BATCH, "accumulation": MICRO_BATCHES, "steps": STEPS,
        "documents": documents, "kv_share": kv_share, "warmup": 5, "learning_rate": 1e-3,
        "clip": CLIP, "weight_decay": WEIGHT_DECAY,
        "sample_bytes": 0, "validation_bytes": 8192, "log": log, "trace": trace,
        "out": os.path.join(directory, "out")
    }
    command = [PRETRAIN]
    for name, value in settings.items():
        command += [f"--{name}", str(value)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(log, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if "loss" in line], trace


def compare(documents, kv_share):
    with tempfile.TemporaryDirectory() as directory:
        lines, trace = run_pretrain(directory, documents, kv_share)
        weights = safetensors(os.path.join(trace, "weights.safetensors"))
        gradients = safetensors(os.path.join(trace, "gradients.safetensors"))
        symbols = array.array("i")
        with open(os.path.join(trace, "symbols.i32"), "rb") as file:
            symbols.frombytes(file.read())
    assert len(lines) == STEPS, f"{len(lines)} steps in the log"
    windows = torch.tensor(symbols, dtype=torch.int64).view(STEPS, MICRO_BATCHES, 2, BATCH,
                                                            SEQUENCE)
    w = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    matrices = [t for t in w.values() if t.dim() == 2]
    gains = [t for t in w.values() if t.dim() == 1]
    adamw = torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY},
                               {"params": gains, "weight_decay": 0.0}],
                              betas=(0.9, 0.95),
                              eps=1e-8)
    worst_loss = worst_gradient = 0.0
    for step, line in enumerate(lines):
        adamw.zero_grad()
        total = 0.0
        counted = int((windows[step][:, 1] != NOT_COUNTED).sum())
        for inputs, targets in windows[step]:
            logits = forward(w, inputs, kv_share)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(),
                                   ignore_index=NOT_COUNTED, reduction="sum") / counted
            loss.backward()
            total += float(loss)
        if step == 0:
            assert set(gradients) == set(w), set(gradients) ^ set(w)
            for name, tensor in w.items():
                far = float((gradients[name] - tensor.grad).norm() / tensor.grad.norm())
                worst_gradient = max(worst_gradient, far)
                assert far <= 1e-5, f"first gradient of {name} is {far:.2e} away"
        for group in adamw.param_groups:
            group["lr"] = line["lr"]
        torch.nn.utils.clip_grad_norm_(w.values(), CLIP)
        adamw.step()
        far = abs(line["loss"] - total) / total
        worst_loss = max(worst_loss, far)
        assert far <= 1e-4, f"step {step}: loss {line['loss']} here, {total} in torch"
    assert lines[-1]["loss"] < 0.8 * lines[0]["loss"], "the model did not learn"
    print(
        f"documents {documents}, kv_share {kv_share}, {STEPS} steps: losses within "
        f"{worst_loss:.1e}, first gradients of {len(w)} weights within {worst_gradient:.1e}"
    )


if __name__ == "__main__":
    for case in (("false", 0), ("lines", 0), ("lines", 2)):
        compare(*case)
