// Refuses settings of memory that contradict each other: budgets and plans, recompute, swap, and
// inputs that ranks save in parts.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/model/layer_modules.hpp"

namespace decoder {
namespace {

bool among(const std::string& word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

const std::string& configuration::word(const char* name) const {
  return **std::get_if<std::string*>(&at(name).value);
}

void configuration::check_memory() const {
  check_recompute();
  check_swap();
  check_saved();
  const std::pair<const char*, const char*> apart[] = {{"memory_trace", "log"},
                                                       {"memory_snapshot", "log"},
                                                       {"memory_snapshot", "memory_trace"},
                                                       {"expert_picture", "log"},
                                                       {"expert_picture", "timeline"},
                                                       {"gradients", "log"},
                                                       {"gradients", "timeline"},
                                                       {"gradients", "memory_trace"},
                                                       {"gradients", "memory_snapshot"}};
  for (const auto& [one, other] : apart) {
    const std::string& file = word(one);
    if (!file.empty() && file == word(other)) refuse(one, "must not be", other);
  }
}

void configuration::check_recompute() const {
  const memory_settings& y = values.memory;
  const std::string& kind = y.recompute;
  if (!among(kind, {"none", "full", "block", "uniform", "selective", "activation", "norm", "mlp",
                    "experts", "dispatch", "adaptive"}))
    refuse(
        "recompute",
        "must be none, full, block, uniform, selective, activation, norm, mlp, experts, dispatch "
        "or adaptive");
  if (among(kind, {"experts", "dispatch"}) && !values.model.has_experts())
    refuse("recompute", "is of a model with experts, not with", "experts");
  if (kind != "experts")
    require_unset("recompute_load", "is of what experts compute, not with", "recompute");
  if (kind == "adaptive" && y.memory_budget == 0)
    refuse("recompute", "needs a budget;", "memory_budget");
  check_recompute_level();
  const bool counts_layers =
      among(kind, {"block", "activation", "norm", "mlp", "experts", "dispatch"});
  if (y.recompute_layers_per_rank && !counts_layers)
    refuse("recompute_layers_per_rank",
           "is of block, activation, norm, mlp, experts and dispatch, not with", "recompute");
  if (y.recompute_layers == 0) {
    if (y.recompute_layers_per_rank)
      refuse("recompute_layers_per_rank", "is of a number of layers, not with", "recompute_layers");
    return;
  }
  if (kind != "uniform" && !counts_layers)
    refuse("recompute_layers", "means nothing with", "recompute");
  if (y.recompute_layers > values.model.layers)
    refuse("recompute_layers", "must not exceed", "layers");
}

// Level 2 keeps attention's sum of each layer that is recomputed by itself.
void configuration::check_recompute_level() const {
  const memory_settings& y = values.memory;
  if (y.recompute_level == 1) return;
  const char* const name = "recompute_communication_level";
  if (values.parallel.tp == 1)
    return require_unset(name, "is of ranks that share matrices, not with", "tp");
  if (!among(y.recompute, {"full", "block", "uniform", "adaptive"}))
    refuse(name, "is of layers that are recomputed from their input, not with", "recompute");
  if (y.recompute == "uniform" && y.recompute_layers > 1)
    refuse(name, "is of layers that are recomputed one by one, not with", "recompute_layers");
  if (y.distribute_saved)
    refuse(name, "is of rows that are not gathered again, not with",
           "distribute_saved_activations");
}

void configuration::check_swap() const {
  const memory_settings& y = values.memory;
  for (const char* name : {"swap_activations", "swap_optimizer"}) {
    const std::string& where = word(name);
    if (!among(where, {"off", "host", "disk"})) refuse(name, "must be off, host or disk");
    if (where == "disk" && y.swap_dir.empty()) refuse(name, "needs a directory;", "swap_dir");
  }
  if (!modules_in(y.swap_modules))
    refuse(
        "swap_modules",
        "must be some of input_norm, self_attention, post_attention_norm and mlp, each once, with "
        "',' between and no space");
  if (y.swap_activations == "off")
    require_unset("swap_modules", "is of activations that wait elsewhere, not with",
                  "swap_activations");
}

// What ranks that share matrices save in parts.
void configuration::check_saved() const {
  const memory_settings& y = values.memory;
  if (!y.distribute_saved) return;
  const char* const name = "distribute_saved_activations";
  if (values.parallel.tp == 1) refuse(name, "is of ranks that share matrices, not with", "tp");
  if (values.parallel.sequence_parallel)
    refuse(name, "is of rows that all ranks have, not with", "sequence_parallel");
  if (!among(y.recompute, {"full", "block", "uniform"}))
    refuse(name, "is of layers that are recomputed from their input, not with", "recompute");
}

}  // namespace decoder
