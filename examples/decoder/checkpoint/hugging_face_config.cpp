// config.json: the model's shape under the keys of transformers' LlamaConfig, MixtralConfig,
// Glm4MoeConfig or DeepseekV3Config.
//
// A router that is not Mixtral's has a type of its own, which transformers refuses; and so has one
// that is not GLM-4's, in a model with a shared expert, dense layers or a router's bias, or with
// latent attention, which then is no DeepseekV3.
//
// A model with kv_share has a type of its own, since a Llama would draw the missing weights at
// random. The factor has the key that
// HunYuan's models use. With the factor 2 both share the same layers; with others they do not.
#include <jansson.h>

#include <cstdlib>

#include "examples/decoder/checkpoint/checkpoint.hpp"
#include "examples/decoder/data/vocabulary.hpp"
#include "examples/decoder/files/json_memory.hpp"

namespace decoder {
namespace {

struct model_type {
  const char *architecture, *name;
};

bool has_mixtrals_router(const model_settings& m) {
  return m.router == "softmax" && m.router_normalize && m.router_scale == 1 && m.router_groups == 1;
}

bool has_glms_layers(const model_settings& m) {
  return m.router == "sigmoid" && m.router_bias && m.shared_experts > 0;
}

model_type type_of_config(const model_settings& m) {
  if (m.kv_share > 0) return {"LlamaClaForCausalLM", "llama_cla"};
  if (m.is_latent())
    return m.has_experts() && has_glms_layers(m)
               ? model_type{"DeepseekV3ForCausalLM", "deepseek_v3"}
               : model_type{"DeepseekV3RouterForCausalLM", "deepseek_v3_router"};
  if (!m.has_experts()) return {"LlamaForCausalLM", "llama"};
  if (!m.has_mixtrals_layers())
    return has_glms_layers(m) ? model_type{"Glm4MoeForCausalLM", "glm4_moe"}
                              : model_type{"Glm4MoeRouterForCausalLM", "glm4_moe_router"};
  if (has_mixtrals_router(m)) return {"MixtralForCausalLM", "mixtral"};
  return {"MixtralRouterForCausalLM", "mixtral_router"};
}

// All of a router but its score function, as Glm4MoeConfig has it.
void set_router(json_t* root, const model_settings& m) {
  const auto set = [&](const char* key, json_t* value) { json_object_set_new(root, key, value); };
  set("norm_topk_prob", json_boolean(m.router_normalize));
  set("routed_scaling_factor", json_real(m.router_scale));
  set("n_group", json_integer(m.router_groups));
  set("topk_group", json_integer(m.router_groups_kept));
}

// transformers' balance loss is another one, over all layers together; it is off by default.
void set_mixtrals_experts(json_t* root, const model_settings& m) {
  const auto set = [&](const char* key, json_t* value) { json_object_set_new(root, key, value); };
  set("num_local_experts", json_integer(m.experts));
  set("router_jitter_noise", json_real(0));
  if (has_mixtrals_router(m)) return;
  set("scoring_func", json_string(m.router.c_str()));
  set_router(root, m);
}

void set_glms_experts(json_t* root, const model_settings& m) {
  const auto set = [&](const char* key, json_t* value) { json_object_set_new(root, key, value); };
  set("n_routed_experts", json_integer(m.experts));
  set("n_shared_experts", json_integer(m.shared_experts));
  set("moe_intermediate_size", json_integer(m.expert_width()));
  set("first_k_dense_replace", json_integer(m.layers - m.expert_layers()));
  set_router(root, m);
  set("attention_bias", json_false());
  set("num_nextn_predict_layers", json_integer(0));
  if (!m.is_latent()) {
    set("use_qk_norm", json_false());
    set("partial_rotary_factor", json_real(1));
  }
  if (has_glms_layers(m) && m.has_experts()) return;
  set("scoring_func", json_string(m.router.c_str()));
  set("router_bias", json_boolean(m.router_bias));
}

void set_latent(json_t* root, const model_settings& m) {
  const auto set = [&](const char* key, std::int64_t value) {
    json_object_set_new(root, key, json_integer(value));
  };
  if (m.q_lora_rank > 0)
    set("q_lora_rank", m.q_lora_rank);
  else
    json_object_set_new(root, "q_lora_rank", json_null());
  set("kv_lora_rank", m.kv_lora_rank);
  set("qk_nope_head_dim", m.qk_nope_head_dim);
  set("qk_rope_head_dim", m.qk_rope_head_dim);
  set("v_head_dim", m.v_head_dim);
  json_object_set_new(root, "rope_interleave", json_true());
}

void set_experts(json_t* root, const model_settings& m) {
  const auto set = [&](const char* key, json_t* value) { json_object_set_new(root, key, value); };
  set("num_experts_per_tok", json_integer(m.experts_per_token));
  set("output_router_logits", json_false());
  m.has_mixtrals_layers() ? set_mixtrals_experts(root, m) : set_glms_experts(root, m);
}

}  // namespace

std::string hugging_face_config(const model_settings& m, std::int64_t sequence) {
  json_t* root = json_object();
  const auto set = [&](const char* key, json_t* value) { json_object_set_new(root, key, value); };
  const bool shares = m.kv_share > 0;
  const model_type type = type_of_config(m);
  set("architectures", json_pack("[s]", type.architecture));
  set("model_type", json_string(type.name));
  set("torch_dtype", json_string(m.dtype == "bf16" ? "bfloat16" : "float32"));
  set("vocab_size", json_integer(m.vocab));
  set("hidden_size", json_integer(m.hidden));
  const bool is_mixtral = m.has_experts() && m.has_mixtrals_layers();
  set("intermediate_size", json_integer(is_mixtral ? m.expert_width() : m.inner));
  set("num_hidden_layers", json_integer(m.layers));
  set("num_attention_heads", json_integer(m.heads));
  set("num_key_value_heads", json_integer(m.kv_heads));
  set("head_dim", json_integer(m.is_latent() ? m.qk_rope_head_dim : m.head_dim()));
  if (shares) {
    set("use_cla", json_true());
    set("cla_share_factor", json_integer(m.kv_share));
  }
  if (m.is_latent()) set_latent(root, m);
  const bool has_types_experts = m.has_experts() || m.is_latent();  // a layer's, or no layer's
  if (has_types_experts) set_experts(root, m);
  set("hidden_act", json_string("silu"));
  set("max_position_embeddings", json_integer(sequence));
  set("rms_norm_eps", json_real(m.norm_epsilon));
  set("rope_theta", json_real(m.rope_theta));
  set("tie_word_embeddings", json_boolean(m.tied));
  if (!has_types_experts) {
    set("attention_bias", json_false());
    set("mlp_bias", json_false());
  }
  set("attention_dropout", json_real(0));
  set("initializer_range", json_real(0.02));
  set("use_cache", json_true());
  set("bos_token_id", json_integer(bos));
  set("eos_token_id", json_integer(eos));
  set("pad_token_id", json_integer(pad));
  char* dumped = json_dumps(root, JSON_INDENT(2));
  json_decref(root);
  require_json_memory();
  std::string text = std::string(dumped) + "\n";
  std::free(dumped);
  return text;
}

}  // namespace decoder
