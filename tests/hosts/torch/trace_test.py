"""The main job's --trace repeated by transformers' Llama, Mixtral, Glm4Moe and DeepseekV3 in
double: 20 steps of torch's AdamW from the trace's weights on the trace's windows. Models of experts
are those of examples/pretrain/models, each file a model.

Losses and gradient norms of all steps must be within 1e-4, the first gradients within 1e-5
(norm-wise). transformers computes norms, the rotary table and a router's scores in float32 whatever
the model's type. Its balance loss is over all layers together; here it is computed layer by layer.
Usage: trace_test.py PRETRAIN
"""
import os
import pathlib
import re
import tempfile

from main_job import (ROOT, SHAPE, loss_of, require_near, run, steps_of, torch, transformers,
                      windows_of)
from safetensors.torch import load_file

STEPS, MICRO_BATCHES, WEIGHT_DECAY, CLIP = 20, 2, 0.1, 2.0
BETAS, EPSILON = (0.9, 0.95), 1e-8


BALANCE = 0.05
MODELS = sorted(pathlib.Path(ROOT, "examples", "pretrain", "models").glob("*.json"))
KINDS = [(*SHAPE, "--tied", "false"), (*SHAPE, "--tied", "true"),
         *(("--config", str(path), "--balance_loss", str(BALANCE), "--layers", "2")
           for path in MODELS)]  # of more layers a score that rounds differently changes a choice
MIXTRALS = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}


def merged(tensors):
    """Weights by the names of transformers' modules, which have the experts of a layer together."""
    made, experts = {}, {}
    for name, tensor in tensors.items():
        name = name.replace(".block_sparse_moe.", ".mlp.")
        found = re.fullmatch(r"(.*)\.mlp\.experts\.(\d+)\.(\w+)\.weight", name)
        if found:
            which = MIXTRALS.get(found[3], found[3])
            experts.setdefault(found[1], {})[which, int(found[2])] = tensor
        else:
            made[name] = tensor
    for layer, of in experts.items():
        every = range(len(of) // 3)
        made[f"{layer}.mlp.experts.gate_up_proj"] = torch.stack(
            [torch.cat((of["gate_proj", e], of["up_proj", e])) for e in every])
        made[f"{layer}.mlp.experts.down_proj"] = torch.stack([of["down_proj", e] for e in every])
    return made


def balance_of(routed, is_mixtral):
    """E sum f p over the experts, f of the choices and p of the scores."""
    logits, _, chosen = routed
    scores = torch.softmax(logits, dim=-1) if is_mixtral else torch.sigmoid(logits)
    experts = logits.shape[-1]
    share = torch.bincount(chosen.flatten(), minlength=experts) / chosen.numel()
    return experts * (share * (scores / scores.sum(-1, keepdim=True)).mean(0)).sum()


def whole_loss(model, inputs, targets):
    """What is trained, and the part of it that a run reports."""
    routed = []
    hooks = [module.register_forward_hook(lambda _, __, found: routed.append(found))
             for name, module in model.named_modules() if name.endswith("mlp.gate")]
    loss = loss_of(model, inputs, targets)
    for each in hooks:
        each.remove()
    is_mixtral = model.config.model_type == "mixtral"
    assert bool(routed) == (model.config.model_type != "llama")
    return loss + BALANCE * sum(balance_of(each, is_mixtral) for each in routed), loss


def traced(directory, kind):
    """A run; its steps, and the model of transformers with the weights it started from."""
    out, trace = os.path.join(directory, "out"), os.path.join(directory, "trace")
    run(directory, *kind, "--accumulation", str(MICRO_BATCHES), "--steps",
        str(STEPS), "--warmup", "4", "--learning_rate", "3e-3", "--beta1", str(BETAS[0]), "--beta2",
        str(BETAS[1]), "--epsilon", str(EPSILON), "--weight_decay", str(WEIGHT_DECAY), "--clip",
        str(CLIP), "--out", out, "--log", "log.jsonl", "--trace", trace)
    config = transformers.AutoConfig.from_pretrained(os.path.join(out, "checkpoint"))
    model = transformers.AutoModelForCausalLM.from_config(
        config, experts_implementation="eager").double()
    start = {name: tensor.double() for name, tensor in
             load_file(os.path.join(trace, "weights.safetensors")).items()}
    missing, unexpected = model.load_state_dict(merged(start), strict=False)
    assert not unexpected and missing == (["lm_head.weight"] if config.tie_word_embeddings else [])
    return steps_of(directory), model


def require_first_gradients(directory, model):
    """Those of the trace, each within 1e-5 of its norm."""
    gradients = merged(load_file(os.path.join(directory, "trace", "gradients.safetensors")))
    named = dict(model.named_parameters())
    assert set(gradients) == set(named), set(gradients) ^ set(named)
    worst = 0.0
    for name, tensor in named.items():
        far = float((gradients[name] - tensor.grad).norm() / tensor.grad.norm())
        assert far <= 1e-5, f"first gradient of {name} is {far:.2e} away"
        worst = max(worst, far)
    return worst


def check(directory, kind):
    lines, model = traced(directory, kind)
    windows = windows_of(directory, MICRO_BATCHES)
    assert len(lines) == len(windows) == STEPS, (len(lines), len(windows))
    matrices = [t for t in model.parameters() if t.dim() > 1]
    gains = [t for t in model.parameters() if t.dim() == 1]
    adamw = torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY},
                               {"params": gains, "weight_decay": 0.0}], betas=BETAS, eps=EPSILON)
    worst = {"loss": 0.0, "grad_norm": 0.0}
    clipped = 0
    for step, line in enumerate(lines):
        adamw.zero_grad()
        found = {"loss": 0.0}
        for inputs, targets in windows[step]:
            whole, loss = whole_loss(model, inputs, targets)
            (whole / MICRO_BATCHES).backward()
            found["loss"] += float(loss.detach()) / MICRO_BATCHES
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
    print(f"{' '.join(kind)}, {STEPS} steps, {clipped} clipped: losses within {worst['loss']:.1e}, "
          f"norms within {worst['grad_norm']:.1e}, first gradients within {gradient:.1e}")


if __name__ == "__main__":
    for choice in KINDS:
        with tempfile.TemporaryDirectory() as scratch:
            check(scratch, choice)
