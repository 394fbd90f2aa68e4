// Reads the layout and the assumptions of a tuning's JSON, which has every key with its value.
#include "tools/velo/commands/tune/pretrain.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace command {
namespace {

constexpr std::int64_t symbols = 259;  // of pretrain's vocabulary
constexpr std::int64_t most_ranks = 1024;

// A plan, with the job that it is of.
class pretrain_plan {
 public:
  pretrain_plan(const json_t* tuning, std::size_t index)
      : plan_(json_array_get(member(tuning, "plans"), index)),
        layout_(member(plan_, "layout")),
        assumed_(member(tuning, "assumptions")) {
    const json_t* layers = member(plan_, "stage_layers");
    for (std::size_t i = 0; i < json_array_size(layers); ++i)
      stage_layers_.push_back(json_integer_value(json_array_get(layers, i)));
  }

  std::int64_t layout(const char* name) const { return json_integer_value(member(layout_, name)); }
  // Tensor ranks that cut the heads, and all that share attention's rows.
  std::int64_t ranks_x() const { return layout("tp_x") > 0 ? layout("tp_x") : layout("tp"); }
  std::int64_t attention_ranks() const { return layout("cp") * layout("tp") / ranks_x(); }
  std::string word(const char* name) const { return text(layout_, name); }
  std::int64_t model(const char* name) const { return json_integer_value(config("model", name)); }
  std::int64_t training(const char* name) const {
    return json_integer_value(config("training", name));
  }
  bool shares_rows() const { return json_is_true(member(layout_, "sequence_parallel")); }
  bool trains_with(const char* name) const { return json_is_true(config("training", name)); }
  bool is(const char* name) const { return json_is_true(config("model", name)); }
  bool has(const char* name) const { return config("model", name) != nullptr; }
  std::int64_t ranks() const { return json_integer_value(member(assumed_, "config.accelerators")); }

  // "2,3,3,0"; empty: all stages have as many.
  std::string uneven_stages() const {
    std::string all;
    bool is_even = true;
    for (const std::int64_t count : stage_layers_) {
      all += (all.empty() ? "" : ",") + std::to_string(count);
      is_even = is_even && count == stage_layers_.front();
    }
    return is_even ? "" : all;
  }

 private:
  const json_t* config(const char* section, const char* name) const {
    return member(assumed_, ("config." + std::string(section) + "." + name).c_str());
  }

  const json_t *plan_, *layout_, *assumed_;
  std::vector<std::int64_t> stage_layers_;
};

// The optimizer's settings whose state takes no more than the plan was priced with; `missing` says
// why there are none.
struct state_settings {
  explicit state_settings(const pretrain_plan& of) {
    const std::int64_t weights = of.training("parameter_bytes"),
                       sums = of.training("gradient_bytes"), state = of.training("optimizer_bytes");
    is_f32 = weights == 4;
    const std::int64_t least = is_f32 ? 8 : 6;  // both moments; in 16 bits, and masters' residuals
    if (weights != 2 && weights != 4)
      missing = "its weights take " + std::to_string(weights) + " bytes, not 2 or 4";
    else if (sums < (is_f32 ? 4 : 2))
      missing = "its gradients take " + std::to_string(sums) + " bytes a parameter";
    else if (state < least)
      missing = "its optimizer takes " + std::to_string(state) + " bytes a parameter, less than " +
                std::to_string(least);
    if (is_f32) return;
    narrow_sums = sums < 4;
    narrow_moments = state < 10;
    residuals = state < 8 || (state >= 10 && state < 12);
  }

  bool is_f32, narrow_sums = false, narrow_moments = false, residuals = false;
  std::string missing;
};

// The bounds of pretrain's settings that those of velo_tune exceed.
std::string size_refusal(const pretrain_plan& of) {
  struct bound {
    const char* name;
    std::int64_t got, least, most;
  };
  const std::int64_t wide = 1 << 20, windows = of.layout("micro_batch") * of.layout("dp");
  const bound bounds[] = {
      {"hidden", of.model("hidden"), 2, 65536},
      {"layers", of.model("layers"), 1, 1024},
      {"heads", of.model("heads"), 1, 1024},
      {"ffn_hidden", of.model("ffn_hidden"), 1, wide},
      {"vocabulary", of.model("vocabulary"), symbols, wide},
      {"sequence", of.training("sequence"), 2, wide},
      {"tokens of a micro-batch", of.training("sequence") * windows, 2, std::int64_t{1} << 31}};
  for (const auto& [name, got, least, most] : bounds)
    if (got < least || got > most)
      return std::string("its ") + name + " is " + std::to_string(got) + ", and pretrain takes " +
             std::to_string(least) + " to " + std::to_string(most);
  if (of.ranks() > most_ranks) return "it takes more than 1024 ranks";
  return "";
}

std::string model_refusal(const pretrain_plan& of) {
  if (of.has("moe.experts")) return "it has experts, which are not written into its configuration";
  if (of.has("latent_attention.kv_rank"))
    return "it has latent attention, which is not written into its configuration";
  if (!of.is("gated")) return "its feed-forwards are not gated";
  if (of.is("dropout")) return "it has dropout";
  if (!of.is("flash_attention")) return "it keeps the scores of attention";
  if (of.model("head_dim") * of.model("heads") != of.model("hidden"))
    return "its heads are not hidden / heads wide";
  if (of.model("head_dim") % 2 != 0) return "its heads have an odd width";
  return size_refusal(of);
}

std::string layout_refusal(const pretrain_plan& of) {
  const std::int64_t x = of.ranks_x();
  if (x > of.model("kv_heads") && (x % of.model("kv_heads") != 0 || of.model("heads") % x != 0))
    return std::string(of.layout("tp_x") > 0 ? "tp_x" : "tp") +
           " exceeds kv_heads and is no multiple of it that divides heads";
  if (of.word("recompute") == "norms") return "it recomputes norms and activations";
  return "";
}

std::string refusal(const pretrain_plan& of) {
  if (std::string why = model_refusal(of); !why.empty()) return why;
  if (std::string missing = state_settings(of).missing; !missing.empty()) return missing;
  if (of.trains_with("fp8")) return "it trains in fp8";
  if (of.layout("zero") > 1) return "it shares gradients (zero 2)";
  return layout_refusal(of);
}

json_t* section(const json& all, const char* name) {
  json_t* made = json_object();
  json_object_set_new(all.get(), name, made);
  return made;
}
void set(json_t* to, const char* name, std::int64_t value) {
  json_object_set_new(to, name, json_integer(value));
}
void set(json_t* to, const char* name, const std::string& value) {
  json_object_set_new(to, name, json_string(value.c_str()));
}
void set(json_t* to, const char* name, bool value) {
  json_object_set_new(to, name, json_boolean(value));
}

void write_model(json_t* to, const pretrain_plan& of) {
  const char* const names[][2] = {{"hidden", "hidden"},    {"layers", "layers"},
                                  {"heads", "heads"},      {"kv_heads", "kv_heads"},
                                  {"inner", "ffn_hidden"}, {"vocab", "vocabulary"}};
  for (const auto& [name, from] : names) set(to, name, of.model(from));
  set(to, "tied", of.is("tied_embeddings"));
  set(to, "dtype", std::string(state_settings(of).is_f32 ? "f32" : "bf16"));
}

void write_optimizer(json_t* to, const pretrain_plan& of) {
  const state_settings s(of);
  set(to, "o2_gradient", s.narrow_sums);
  set(to, "o2_optimizer", s.narrow_moments);
  set(to, "reuse_fp32_param", s.residuals);
}

void write_parallel(json_t* to, const pretrain_plan& of) {
  for (const char* name : {"tp", "cp", "pp"}) set(to, name, of.layout(name));
  if (of.attention_ranks() > 1) set(to, "cp_algorithm", of.word("cp_algorithm"));
  if (of.layout("cp_ulysses") > 1) set(to, "cp_ulysses", of.layout("cp_ulysses"));
  if (of.layout("tp_x") > 0 && of.layout("tp") > 1)
    set(to, "tp_x", of.layout("tp_x"));  // which cuts rows, too
  else if (of.layout("tp") > 1)
    set(to, "sequence_parallel", of.shares_rows());
  if (of.layout("tp_slices") > 1) set(to, "tp_slices", of.layout("tp_slices"));
  if (of.layout("pp") == 1) return;
  set(to, "pipeline", of.word("schedule"));
  set(to, "vpp", of.layout("vpp"));
  if (of.layout("sequence_splits") > 0) set(to, "sequence_splits", of.layout("sequence_splits"));
  const std::string uneven = of.uneven_stages();
  if (!uneven.empty()) set(to, "stage_layers", uneven);
}

}  // namespace

std::string pretrain_refusal(const json_t* tuning, std::size_t plan) {
  return refusal(pretrain_plan(tuning, plan));
}

void mark_plans(json_t* tuning) {
  const json_t* plans = member(tuning, "plans");
  for (std::size_t i = 0; i < json_array_size(plans); ++i) {
    const std::string why = pretrain_refusal(tuning, i);
    json_t* plan = json_array_get(plans, i);
    json_object_set_new(plan, "runnable", json_boolean(why.empty()));
    if (!why.empty()) json_object_set_new(plan, "not_runnable", json_string(why.c_str()));
  }
}

std::string pretrain_config(const json_t* tuning, std::size_t plan) {
  const pretrain_plan of(tuning, plan);
  const json all(json_object());
  write_model(section(all, "model"), of);
  json_t* data = section(all, "data");
  set(data, "sequence", of.training("sequence"));
  set(data, "batch", of.layout("micro_batch") * of.layout("dp"));
  set(data, "accumulation", of.layout("microbatches"));
  write_optimizer(section(all, "optimizer"), of);
  set(section(all, "memory"), "recompute", of.word("recompute"));
  write_parallel(section(all, "parallel"), of);
  json_t* run = section(all, "run");
  set(run, "ranks", of.ranks());
  set(run, "zero", of.layout("zero") == 1 && of.layout("dp") * of.layout("cp") > 1);
  const std::unique_ptr<char, void (*)(void*)> written(json_dumps(all.get(), JSON_INDENT(2)),
                                                       &free);
  return std::string(written.get()) + "\n";
}

}  // namespace command
