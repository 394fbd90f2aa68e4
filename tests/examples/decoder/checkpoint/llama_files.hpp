// Folders like those of LlamaForCausalLM.save_pretrained, written without the library: tensors by
// transformers' names, shapes and order of keys, in one file or in several with an index.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "examples/decoder/settings.hpp"
#include "tests/examples/decoder/temporary.hpp"

struct stored_tensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // what a file of its type holds exactly
  bool bf16 = false;
};

using stored_model = std::map<std::string, stored_tensor>;

inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Values that differ between tensors and elements.
inline stored_tensor stored(std::vector<std::int64_t> shape, unsigned seed, bool bf16) {
  stored_tensor made{std::move(shape), {}, bf16};
  std::int64_t count = 1;
  for (const std::int64_t size : made.shape) count *= size;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float value = static_cast<float>(seed >> 8) / 0x1p26f - 0.125f;
    made.values.push_back(bf16 ? float_of(bits_of(value) & 0xffff0000u) : value);
  }
  return made;
}

inline stored_model llama_tensors(const decoder::model_settings& m, bool bf16 = false) {
  stored_model all;
  unsigned seed = 7;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    all[name + ".weight"] = stored(std::move(shape), ++seed * 7919u, bf16);
  };
  const std::int64_t keys = m.hidden / m.heads * m.kv_heads;
  add("model.embed_tokens", {m.vocab, m.hidden});
  add("model.norm", {m.hidden});
  if (!m.tied) add("lm_head", {m.vocab, m.hidden});
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const std::string p = "model.layers." + std::to_string(layer) + ".";
    add(p + "input_layernorm", {m.hidden});
    add(p + "post_attention_layernorm", {m.hidden});
    add(p + "self_attn.o_proj", {m.hidden, m.heads * m.value_dim()});
    if (m.is_latent()) {
      add(p + "self_attn.q_a_proj", {m.q_lora_rank, m.hidden});
      add(p + "self_attn.q_a_layernorm", {m.q_lora_rank});
      add(p + "self_attn.q_b_proj", {m.heads * m.head_dim(), m.q_lora_rank});
      add(p + "self_attn.kv_a_proj_with_mqa", {m.kv_lora_rank + m.qk_rope_head_dim, m.hidden});
      add(p + "self_attn.kv_a_layernorm", {m.kv_lora_rank});
      add(p + "self_attn.kv_b_proj",
          {m.heads * (m.qk_nope_head_dim + m.v_head_dim), m.kv_lora_rank});
    } else {
      add(p + "self_attn.q_proj", {m.hidden, m.hidden});
      add(p + "self_attn.k_proj", {keys, m.hidden});
      add(p + "self_attn.v_proj", {keys, m.hidden});
    }
    const auto add_block = [&](const std::string& in, std::int64_t inner) {
      add(p + in + "gate_proj", {inner, m.hidden});
      add(p + in + "up_proj", {inner, m.hidden});
      add(p + in + "down_proj", {m.hidden, inner});
    };
    if (!m.has_experts() || layer < m.dense_layers) {
      add_block("mlp.", m.inner);
      continue;
    }
    if (m.shared_experts > 0) {
      add_block("mlp.shared_experts.", m.shared_experts * m.expert_inner);
      add(p + "mlp.gate", {m.experts, m.hidden});
      all[p + "mlp.gate.e_score_correction_bias"] = stored({m.experts}, ++seed * 7919u, false);
      for (std::int64_t e = 0; e < m.experts; ++e)
        add_block("mlp.experts." + std::to_string(e) + ".", m.expert_inner);
      continue;
    }
    add(p + "block_sparse_moe.gate", {m.experts, m.hidden});
    for (std::int64_t e = 0; e < m.experts; ++e) {
      const std::string expert = p + "block_sparse_moe.experts." + std::to_string(e);
      for (const char* name : {".w1", ".w3"}) add(expert + name, {m.inner, m.hidden});
      add(expert + ".w2", {m.hidden, m.inner});
    }
  }
  return all;
}

inline std::string safetensors_bytes(const stored_model& tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})", data;
  for (const auto& [name, each] : tensors) {
    std::string shape;
    for (const std::int64_t size : each.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    const std::size_t begin = data.size();
    for (const float value : each.values) {
      const std::uint32_t bits = bits_of(value);
      const char* first = reinterpret_cast<const char*>(&bits);
      data.append(first + (each.bf16 ? 2 : 0), first + 4);
    }
    header += ",\"" + name + R"(":{"dtype":")" + (each.bf16 ? "BF16" : "F32") + R"(","shape":[)" +
              shape + R"(],"data_offsets":[)" + std::to_string(begin) + "," +
              std::to_string(data.size()) + "]}";
  }
  header += "}";
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

// What transformers 5 writes.
inline std::string llama_config(const decoder::model_settings& m) {
  const auto number = [](const char* key, std::int64_t value) {
    return std::string("  \"") + key + "\": " + std::to_string(value) + ",\n";
  };
  return "{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ],\n"
         "  \"attention_bias\": false,\n  \"attention_dropout\": 0.0,\n  \"bos_token_id\": 1,\n"
         "  \"dtype\": \"" +
         std::string(m.dtype == "bf16" ? "bfloat16" : "float32") + "\",\n" +
         number("head_dim", m.hidden / m.heads) + "  \"hidden_act\": \"silu\",\n" +
         number("hidden_size", m.hidden) + number("intermediate_size", m.inner) +
         number("max_position_embeddings", 2048) +
         "  \"mlp_bias\": false,\n  \"model_type\": \"llama\",\n" +
         number("num_attention_heads", m.heads) + number("num_hidden_layers", m.layers) +
         number("num_key_value_heads", m.kv_heads) +
         "  \"pad_token_id\": null,\n  \"pretraining_tp\": 1,\n  \"rms_norm_eps\": 1e-05,\n"
         "  \"rope_parameters\": {\n    \"rope_theta\": 10000.0,\n    \"rope_type\": \"default\"\n"
         "  },\n  \"tie_word_embeddings\": " +
         (m.tied ? "true" : "false") + ",\n" + number("vocab_size", m.vocab) +
         "  \"use_cache\": true\n}\n";
}

inline std::string index_of(const std::map<std::string, std::string>& files) {
  std::string map;
  for (const auto& [tensor, file] : files)
    map += (map.empty() ? "    \"" : ",\n    \"") + tensor + "\": \"" + file + "\"";
  return "{\n  \"metadata\": {\n    \"total_size\": 1\n  },\n  \"weight_map\": {\n" + map +
         "\n  }\n}\n";
}

// What transformers 5 writes of a Mixtral.
inline std::string mixtral_config(const decoder::model_settings& m) {
  const auto number = [](const char* key, std::int64_t value) {
    return std::string("  \"") + key + "\": " + std::to_string(value) + ",\n";
  };
  return "{\n  \"architectures\": [\n    \"MixtralForCausalLM\"\n  ],\n"
         "  \"attention_dropout\": 0.0,\n  \"bos_token_id\": 1,\n  \"dtype\": \"float32\",\n"
         "  \"head_dim\": null,\n  \"hidden_act\": \"silu\",\n" +
         number("hidden_size", m.hidden) + number("intermediate_size", m.inner) +
         "  \"model_type\": \"mixtral\",\n" + number("num_attention_heads", m.heads) +
         number("num_experts_per_tok", m.experts_per_token) +
         number("num_hidden_layers", m.layers) + number("num_key_value_heads", m.kv_heads) +
         number("num_local_experts", m.experts) +
         "  \"output_router_logits\": false,\n  \"rms_norm_eps\": 1e-05,\n"
         "  \"rope_parameters\": {\n    \"rope_theta\": 1000000.0,\n"
         "    \"rope_type\": \"default\"\n  },\n  \"router_aux_loss_coef\": 0.001,\n"
         "  \"router_jitter_noise\": 0.0,\n  \"sliding_window\": null,\n"
         "  \"tie_word_embeddings\": " +
         (m.tied ? "true" : "false") + ",\n" + number("vocab_size", m.vocab) +
         "  \"use_cache\": true\n}\n";
}

// What transformers 5 writes of a Glm4Moe, or of a DeepseekV3.
inline std::string glm_config(const decoder::model_settings& m) {
  const auto number = [](const char* key, std::int64_t value) {
    return std::string("  \"") + key + "\": " + std::to_string(value) + ",\n";
  };
  const std::string latent =
      number("q_lora_rank", m.q_lora_rank) + number("kv_lora_rank", m.kv_lora_rank) +
      number("qk_nope_head_dim", m.qk_nope_head_dim) + number("qk_head_dim", m.head_dim()) +
      number("qk_rope_head_dim", m.qk_rope_head_dim) + number("v_head_dim", m.v_head_dim) +
      "  \"rope_interleave\": true,\n";
  const std::string architecture = m.is_latent() ? "DeepseekV3ForCausalLM" : "Glm4MoeForCausalLM";
  return "{\n  \"architectures\": [\n    \"" + architecture +
         "\"\n  ],\n"
         "  \"attention_bias\": false,\n  \"attention_dropout\": 0.0,\n"
         "  \"dtype\": \"float32\",\n" +
         number("first_k_dense_replace", m.dense_layers) + number("head_dim", m.rotated_dim()) +
         "  \"hidden_act\": \"silu\",\n" + number("hidden_size", m.hidden) +
         number("intermediate_size", m.inner) + "  \"model_type\": \"" +
         (m.is_latent() ? "deepseek_v3\",\n" + latent : "glm4_moe\",\n") +
         number("moe_intermediate_size", m.expert_inner) + number("n_group", m.router_groups) +
         number("n_routed_experts", m.experts) + number("n_shared_experts", m.shared_experts) +
         "  \"norm_topk_prob\": true,\n" + number("num_attention_heads", m.heads) +
         number("num_experts_per_tok", m.experts_per_token) +
         number("num_hidden_layers", m.layers) + number("num_key_value_heads", m.kv_heads) +
         "  \"num_nextn_predict_layers\": 1,\n  \"output_router_logits\": false,\n"
         "  \"rms_norm_eps\": 1e-05,\n  \"rope_parameters\": {\n"
         "    \"partial_rotary_factor\": 1.0,\n    \"rope_theta\": 10000.0,\n"
         "    \"rope_type\": \"default\"\n  },\n"
         "  \"routed_scaling_factor\": " +
         std::to_string(m.router_scale) +
         ",\n  \"tie_word_embeddings\": " + (m.tied ? "true" : "false") + ",\n" +
         number("topk_group", m.router_groups_kept) + "  \"use_qk_norm\": false,\n" +
         number("vocab_size", m.vocab) + "  \"use_cache\": true\n}\n";
}

// Writes the folder, with so many files of tensors.
inline void put_llama(const std::string& folder, const decoder::model_settings& m,
                      const stored_model& tensors, std::size_t files = 1) {
  put(folder + "/config.json", m.shared_experts > 0 ? glm_config(m)
                               : m.has_experts()    ? mixtral_config(m)
                                                    : llama_config(m));
  if (files == 1) {
    put(folder + "/model.safetensors", safetensors_bytes(tensors));
    return;
  }
  std::vector<stored_model> parts(files);
  std::map<std::string, std::string> names;
  std::size_t at = 0;
  for (const auto& [name, each] : tensors) {
    parts[at % files][name] = each;
    names[name] = "model-" + std::to_string(at++ % files + 1) + ".safetensors";
  }
  for (std::size_t i = 0; i < files; ++i)
    put(folder + "/model-" + std::to_string(i + 1) + ".safetensors", safetensors_bytes(parts[i]));
  put(folder + "/model.safetensors.index.json", index_of(names));
}
