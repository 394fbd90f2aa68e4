"""Models that transformers saved, loaded by the main job under layouts of several ranks, and a
checkpoint of several ranks, loaded by transformers.

The first step's loss must be within 1e-5 of transformers'. A run whose learning rate is 0 must give
back the bits it was given. Usage: load_test.py PRETRAIN
"""
import os
import tempfile

from main_job import (BATCH, SEQUENCE, loaded, mean_loss, require_near, run, steps_of, torch,
                      transformers, windows_of)

MICRO_BATCHES = 4
LAYOUTS = {
    "tp": ("--tp", "2"),
    "pp": ("--pp", "2"),
    "cp": ("--cp", "2"),
    "2d": ("--tp", "4", "--tp_x", "2"),
    "zero": ("--ranks", "2", "--zero", "true"),
    "all": ("--tp", "2", "--pp", "2", "--cp", "2"),
}
EXPERT_LAYOUTS = {
    "ep": ("--ranks", "2", "--ep", "2"),
    "tp": ("--tp", "2"),
    "ep over tp and cp": ("--tp", "2", "--cp", "2", "--ep", "4", "--sequence_parallel", "true"),
}
ZERO_IN_STAGES = ("--tp", "2", "--pp", "2", "--ranks", "8", "--zero", "true")


def config_of(kind, tied):
    """A small model of each type."""
    shape = {"vocab_size": 300, "hidden_size": 64, "intermediate_size": 176,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "rms_norm_eps": 1e-6, "max_position_embeddings": SEQUENCE,
             "initializer_range": 0.1, "tie_word_embeddings": tied,
             "rope_parameters": {"rope_type": "default", "rope_theta": 50000.0}}
    glm = {"n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 48,
           "n_shared_experts": 2, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5,
           "first_k_dense_replace": 1}
    if kind == "mixtral":
        return transformers.MixtralConfig(num_local_experts=4, num_experts_per_tok=2, **shape)
    if kind == "glm4_moe":
        return transformers.Glm4MoeConfig(partial_rotary_factor=1.0, head_dim=16, **shape, **glm)
    if kind.startswith("deepseek_v3"):
        latent = {"q_lora_rank": 24 if kind == "deepseek_v3" else None, "kv_lora_rank": 20,
                  "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 14}
        return transformers.DeepseekV3Config(**{**shape, "num_key_value_heads": 4}, **glm, **latent)
    return transformers.LlamaConfig(**shape)


def save(folder, tied, dtype, size, kind):
    """Saves a model of random weights with transformers; the model."""
    torch.manual_seed(11)
    model = transformers.AutoModelForCausalLM.from_config(config_of(kind, tied))
    for name, each in (*model.named_parameters(), *model.named_buffers()):
        if name.endswith("norm.weight"):
            torch.nn.init.normal_(each, 1, 0.1)
        if name.endswith("e_score_correction_bias"):
            torch.nn.init.normal_(each, 0, 0.2)
    model = model.to(dtype)
    model.save_pretrained(folder, max_shard_size=size)
    files = [name for name in os.listdir(folder) if name.endswith(".safetensors")]
    assert (len(files) > 1) == (size != "1GB"), files
    return model.double()


def start(directory, name, *options):
    run(directory, "--warmup", "0", "--accumulation", str(MICRO_BATCHES), "--transport", "local",
        "--dtype", "f32", "--log", name + ".jsonl", "--out", name, *options)
    return steps_of(directory, name + ".jsonl")[0]["loss"]


def check_loaded(directory, tied, dtype, size, kind):
    """The first step's loss of each layout, and the weights that come back."""
    folder = os.path.join(directory, "given")
    given = save(folder, tied, dtype, size, kind)
    load = ("--load", folder, "--steps", "1", "--learning_rate", "0")
    loss = start(directory, "one", *load, "--trace", "trace")
    exact = loaded(folder, torch.float64)  # `given` may have rounded the rotary table
    if kind != "llama":
        exact.set_experts_implementation("eager")  # others have no products in double
    expected = mean_loss(exact, windows_of(directory, MICRO_BATCHES)[0])
    require_near("one rank", loss, expected, 1e-5)
    layouts = LAYOUTS if kind == "llama" else EXPERT_LAYOUTS
    for name, layout in {**layouts, "zero in stages": ZERO_IN_STAGES}.items():
        require_near(name, start(directory, name, *load, *layout), expected, 1e-5)
    for name in ("one", "zero in stages"):
        back = loaded(os.path.join(directory, name, "checkpoint")).state_dict()
        weights = given.state_dict()
        assert set(back) == set(weights), set(back) ^ set(weights)
        for key, tensor in weights.items():
            assert torch.equal(back[key].double(), tensor), f"{name}: {key} differs"
    return expected


def check_written(directory):
    """What eight ranks trained has the loss in transformers that pretrain has with it."""
    folder = os.path.join(directory, "given")
    save(folder, False, torch.float32, "1GB", "llama")
    start(directory, "trained", "--load", folder, "--steps", "4", "--learning_rate", "3e-3",
          *ZERO_IN_STAGES)
    checkpoint = os.path.join(directory, "trained", "checkpoint")
    loss = start(directory, "again", "--load", checkpoint, "--steps", "1", "--trace", "trace")
    windows = windows_of(directory, MICRO_BATCHES)[0]
    expected = mean_loss(loaded(checkpoint, torch.float64), windows)
    require_near("a checkpoint of tp 2, pp 2 and zero", loss, expected, 1e-5)
    before = mean_loss(loaded(folder, torch.float64), windows)
    assert expected < 0.95 * before, f"no training: {before}, then {expected}"
    return expected


if __name__ == "__main__":
    for case in ((False, torch.float32, "1GB", "llama"), (True, torch.float32, "100KB", "llama"),
                 (False, torch.bfloat16, "100KB", "llama"),
                 (False, torch.float32, "100KB", "mixtral"),
                 (False, torch.float32, "100KB", "glm4_moe"),
                 (True, torch.bfloat16, "100KB", "glm4_moe"),
                 (False, torch.float32, "1GB", "deepseek_v3"),
                 (True, torch.bfloat16, "100KB", "deepseek_v3 without q_lora_rank")):
        with tempfile.TemporaryDirectory() as scratch:
            print(f"tied, dtype, shards, type {case}: {check_loaded(scratch, *case):.6f} "
                  f"in every layout ({BATCH} windows of {SEQUENCE})")
    with tempfile.TemporaryDirectory() as scratch:
        print(f"trained by 8 ranks: {check_written(scratch):.6f}")
