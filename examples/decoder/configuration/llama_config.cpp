// The settings of the section "model" from the config.json that transformers writes for a Llama, a
// Mixtral, a Glm4Moe or a DeepseekV3.
//
// Fields that this decoder has are settings of other names; fields that it does not have must be
// absent or say so. A field that is missing has the default of LlamaConfig and the like, where that
// does not depend on the size of the model. Refusals name the file, line and column, and the field.
#include <jansson.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/configuration/json_places.hpp"
#include "examples/decoder/failure.hpp"

namespace decoder {
namespace {

using json_owner = std::unique_ptr<json_t, void (*)(json_t*)>;

json_owner parsed(const std::string& text, json_error_t& error) {
  return {json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error),
          json_decref};
}

// A value that this decoder fixes; `accepted` is a JSON array.
struct fixed_field {
  const char *key, *accepted, *has;
};

constexpr fixed_field fixed_fields[] = {
    {"hidden_act", R"([null, "silu", "swish"])", R"("silu")"},
    {"attention_bias", "[null, false]", "false"},
    {"mlp_bias", "[null, false]", "false"},
    {"attention_dropout", "[null, 0, 0.0]", "0"},
    {"partial_rotary_factor", "[null, 1, 1.0]", "1"},
    {"quantization_config", "[null]", "null"},
};

constexpr fixed_field rope_fields[] = {
    {"rope_type", R"([null, "default"])", R"("default")"},
    {"type", R"([null, "default"])", R"("default")"},
    {"partial_rotary_factor", "[null, 1, 1.0]", "1"},
};

// A setting by its field; without a default the field must be there.
struct named_field {
  const char *key, *setting, *otherwise;
};

constexpr named_field model_fields[] = {
    {"hidden_size", "hidden", nullptr},        {"num_hidden_layers", "layers", nullptr},
    {"num_attention_heads", "heads", nullptr}, {"intermediate_size", "inner", nullptr},
    {"vocab_size", "vocab", nullptr},          {"tie_word_embeddings", "tied", "false"},
};

// The fields that models of one model_type have beside those of all types.
struct model_family {
  const char* type;
  std::vector<fixed_field> fixed;
  std::vector<named_field> named;
  const char *kv_heads, *rope_theta;  // defaults; kv_heads nullptr: as many as heads
  // Settings that no field has, since all models of the type have them.
  std::vector<std::pair<const char*, const char*>> always = {};
};

// The experts of GLM-4, and of DeepSeek-V3 with other defaults.
std::vector<named_field> experts_of_type(const std::vector<named_field>& defaults) {
  std::vector<named_field> all = defaults;
  all.insert(all.end(), {{"norm_topk_prob", "router_normalize", "true"},
                         {"n_shared_experts", "shared_experts", "1"},
                         {"num_experts_per_tok", "experts_per_token", "8"}});
  return all;
}

const std::vector<model_family>& families() {
  static const std::vector<model_family> all = {
      {"llama",
       {{"architectures", R"([null, ["LlamaForCausalLM"]])", R"(["LlamaForCausalLM"])"}},
       {{"rms_norm_eps", "norm_epsilon", "1e-6"}},
       nullptr,
       "10000.0"},
      {"mixtral",
       {{"architectures", R"([null, ["MixtralForCausalLM"]])", R"(["MixtralForCausalLM"])"},
        {"sliding_window", "[null]", "null"},
        {"router_jitter_noise", "[null, 0, 0.0]", "0"}},
       {{"rms_norm_eps", "norm_epsilon", "1e-5"},
        {"num_local_experts", "experts", "8"},
        {"num_experts_per_tok", "experts_per_token", "2"}},
       "8",
       "1000000.0"},
      {"glm4_moe",
       {{"architectures", R"([null, ["Glm4MoeForCausalLM"]])", R"(["Glm4MoeForCausalLM"])"},
        {"use_qk_norm", "[null, false]", "false"}},
       experts_of_type({{"rms_norm_eps", "norm_epsilon", "1e-5"},
                        {"n_routed_experts", "experts", "128"},
                        {"moe_intermediate_size", "expert_inner", "1408"},
                        {"first_k_dense_replace", "dense_layers", "1"},
                        {"routed_scaling_factor", "router_scale", "1.0"},
                        {"n_group", "router_groups", "1"},
                        {"topk_group", "router_groups_kept", "1"}}),
       "8",
       "10000.0",
       {{"router", "sigmoid"}, {"router_bias", "true"}}},
      {"deepseek_v3",
       {{"architectures", R"([null, ["DeepseekV3ForCausalLM"]])", R"(["DeepseekV3ForCausalLM"])"},
        {"rope_interleave", "[null, true]", "true"}},
       experts_of_type({{"rms_norm_eps", "norm_epsilon", "1e-6"},
                        {"n_routed_experts", "experts", "256"},
                        {"moe_intermediate_size", "expert_inner", "2048"},
                        {"first_k_dense_replace", "dense_layers", "3"},
                        {"routed_scaling_factor", "router_scale", "2.5"},
                        {"n_group", "router_groups", "8"},
                        {"topk_group", "router_groups_kept", "4"},
                        {"kv_lora_rank", "kv_lora_rank", "512"},
                        {"qk_nope_head_dim", "qk_nope_head_dim", "128"},
                        {"qk_rope_head_dim", "qk_rope_head_dim", "64"},
                        {"v_head_dim", "v_head_dim", "128"}}),
       nullptr,
       "10000.0",
       {{"attention", "latent"}, {"router", "sigmoid"}, {"router_bias", "true"}}}};
  return all;
}

class config_fields {
 public:
  config_fields(const std::string& text, std::string name)
      : name_(std::move(name)), root_(parsed(text, error_)) {
    if (!root_) fail("%s:%d:%d: %s", name_.c_str(), error_.line, error_.column, error_.text);
    if (!json_is_object(root_.get())) fail("%s: must hold an object", name_.c_str());
    places_ = json_places(text);
  }

  // The value at a dotted path of at most two keys; nullptr where it is missing or null.
  json_t* at(const std::string& path) const {
    const std::size_t dot = path.find('.');
    json_t* found = json_object_get(root_.get(), path.substr(0, dot).c_str());
    if (dot != std::string::npos) found = json_object_get(found, path.substr(dot + 1).c_str());
    return json_is_null(found) ? nullptr : found;
  }

  bool is_null(const char* key) const { return json_is_null(json_object_get(root_.get(), key)); }

  // "config.json:5:18: hidden_size"
  std::string origin(const std::string& path) const {
    const auto found = places_.find(path);
    if (found == places_.end()) return name_ + ": " + path;
    return name_ + ":" + std::to_string(found->second.line) + ":" +
           std::to_string(found->second.column) + ": " + path;
  }

  std::string shown(const std::string& path) const {
    char* raw = json_dumps(at(path), JSON_ENCODE_ANY | JSON_COMPACT);
    std::string text = raw ? raw : "missing";
    std::free(raw);
    return text;
  }

  [[noreturn]] void refuse(const std::string& path, const std::string& has) const {
    fail("%s is %s, but velo's decoder has only %s", origin(path).c_str(), shown(path).c_str(),
         has.c_str());
  }

  void require_fixed(const fixed_field& field, const std::string& inside = "") const {
    json_error_t ignored;
    const json_owner accepted = parsed(field.accepted, ignored), null(json_null(), json_decref);
    json_t* const found = at(inside + field.key);
    for (std::size_t i = 0; i < json_array_size(accepted.get()); ++i)
      if (json_equal(found ? found : null.get(), json_array_get(accepted.get(), i))) return;
    refuse(inside + field.key, field.has);
  }

  // The field that has the base of the wavelengths. It may stand in several, if they agree.
  std::string rope_base() const {
    std::string found;
    for (const char* each :
         {"rope_parameters.rope_theta", "rope_scaling.rope_theta", "rope_theta"}) {
      if (!at(each)) continue;
      if (!found.empty() && json_number_value(at(each)) != json_number_value(at(found)))
        fail("%s is %s, but %s is %s", origin(each).c_str(), shown(each).c_str(), found.c_str(),
             shown(found).c_str());
      found = each;
    }
    return found.empty() ? "rope_theta" : found;
  }

  // rope_scaling of transformers 4, rope_parameters of 5.
  void require_plain_rope(const std::string& name) const {
    json_t* const rope = at(name);
    if (!rope) return;
    if (!json_is_object(rope)) refuse(name, "null or an object");
    for (const fixed_field& each : rope_fields) require_fixed(each, name + ".");
    const char* key;
    json_t* value;
    json_object_foreach(rope, key, value) {
      bool known = std::string(key) == "rope_theta" || json_is_null(value);
      for (const fixed_field& each : rope_fields) known = known || std::string(key) == each.key;
      if (!known) refuse(name + "." + key, "null, as its rope_type is \"default\"");
    }
  }

 private:
  std::string name_;
  json_error_t error_ = {};
  json_owner root_;
  std::map<std::string, place> places_;
};

const model_family& family_of(const config_fields& fields) {
  const std::string found = fields.shown("model_type");
  std::string names;
  for (const model_family& each : families()) {
    const std::string quoted = "\"" + std::string(each.type) + "\"";
    if (found == quoted) return each;
    const bool is_last = &each == &families().back();
    names += (names.empty() ? "" : is_last ? " and " : ", ") + quoted;
  }
  fields.refuse("model_type", names);
}

// GLM-4 rotates half of a head by default.
void require_whole_heads_rotated(const config_fields& fields) {
  constexpr const char* name = "partial_rotary_factor";
  for (const char* in : {"", "rope_parameters.", "rope_scaling."})
    if (fields.at(std::string(in) + name)) return;
  fields.refuse(name, "1");
}

}  // namespace

void configuration::take_fixed(const char* name, const std::string& text,
                               const std::string& origin) {
  set(name, text);
  find(name)->origin = origin;
}

void configuration::read_llama(const std::string& text, const std::string& name) {
  const config_fields fields(text, name);
  const model_family& family = family_of(fields);
  const auto require = [&](const auto& all) {
    for (const fixed_field& each : all) fields.require_fixed(each);
  };
  require(family.fixed);
  require(fixed_fields);
  for (const char* rope : {"rope_scaling", "rope_parameters"}) fields.require_plain_rope(rope);
  if (family.type == std::string("glm4_moe")) require_whole_heads_rotated(fields);
  for (const auto& [setting, text] : family.always)
    take_fixed(setting, text, fields.origin("model_type"));

  const auto take_field = [&](const std::string& path, const char* setting,
                              const std::string& otherwise) {
    json_error_t ignored;
    const json_owner standard = parsed(otherwise, ignored);
    json_t* const found = fields.at(path);
    take(*find(setting), found ? found : standard.get(), fields.origin(path));
  };
  const auto take_all = [&](const auto& all) {
    for (const named_field& each : all) {
      if (!each.otherwise && !fields.at(each.key))
        fail("%s is missing", fields.origin(each.key).c_str());
      take_field(each.key, each.setting, each.otherwise ? each.otherwise : "");
    }
  };
  take_all(model_fields);
  take_all(family.named);
  const model_settings& m = values.model;
  take_field("num_key_value_heads", "kv_heads",
             family.kv_heads ? family.kv_heads : std::to_string(m.heads));
  take_field(fields.rope_base(), "rope_theta", family.rope_theta);
  if (m.is_latent() && !fields.is_null("q_lora_rank"))  // null: there is none
    take_field("q_lora_rank", "q_lora_rank", "1536");
  json_t* const width = fields.at("head_dim");
  if (width && m.is_latent() && json_integer_value(width) != m.qk_rope_head_dim)
    fields.refuse("head_dim", "qk_rope_head_dim, here " + std::to_string(m.qk_rope_head_dim));
  if (width && !m.is_latent() &&
      (m.hidden % m.heads != 0 || json_integer_value(width) != m.head_dim()))
    fields.refuse("head_dim", "hidden_size / num_attention_heads, here " +
                                  std::to_string(m.hidden) + " / " + std::to_string(m.heads));
  const std::string type = fields.at("dtype") ? "dtype" : "torch_dtype";
  if (!fields.at(type)) return;
  const std::string kind = fields.shown(type);
  if (kind != R"("float32")" && kind != R"("bfloat16")")
    fields.refuse(type, R"("float32" and "bfloat16")");
  values.model.dtype = kind == R"("float32")" ? "f32" : "bf16";
  find("dtype")->origin = fields.origin(type);
}

}  // namespace decoder
