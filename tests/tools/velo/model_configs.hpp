// Small models as their config.json, for tests of velo sharding.
#pragma once

// Open, so that a test adds keys.
inline const char* const llama =
    R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 101)";
inline const char* const mixtral =
    R"({"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "vocab_size": 64, "num_local_experts": 4, "num_experts_per_tok": 2})";
inline const char* const deepseek =
    R"({"model_type": "deepseek_v3", "hidden_size": 32, "intermediate_size": 48,
        "moe_intermediate_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4,
        "vocab_size": 64, "n_routed_experts": 8, "n_shared_experts": 1, "first_k_dense_replace": 1,
        "q_lora_rank": 12, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 6,
        "v_head_dim": 5})";
