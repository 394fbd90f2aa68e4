// velo's rules for a stage that is the whole model, and velo's choice among measured parts.
#include "examples/decoder/model/recompute.hpp"

#include <algorithm>
#include <utility>

namespace decoder {
namespace {

velo_recompute_rule rule_of(const memory_settings& memory, std::int64_t layers) {
  const std::string& kind = memory.recompute;
  const auto asked = static_cast<std::int32_t>(memory.recompute_layers);
  const std::int32_t most = asked == 0 ? -1 : asked;
  velo_recompute_rule rule = VELO_RECOMPUTE_RULE_INIT;
  rule.layers = static_cast<std::int32_t>(layers);
  if (kind == "full") rule.method = VELO_RECOMPUTE_METHOD_FULL;
  if (kind == "block") {
    rule.method = VELO_RECOMPUTE_METHOD_BLOCK;
    rule.count = most;
  }
  if (kind == "uniform") {
    rule.method = VELO_RECOMPUTE_METHOD_UNIFORM;
    rule.count = std::max(asked, 1);
  }
  if (kind == "selective") rule.method = VELO_RECOMPUTE_METHOD_SELECTIVE;
  if (kind == "adaptive") rule.method = VELO_RECOMPUTE_METHOD_ADAPTIVE;
  if (kind == "activation") {
    rule.activation = 1;
    rule.activation_layers = most;
  }
  if (kind == "norm") {
    rule.norm = 1;
    rule.norm_layers = most;
  }
  if (kind == "mlp" || kind == "experts" || kind == "dispatch") {
    rule.beside = VELO_RECOMPUTE_BESIDE_SWAP_ATTENTION;  // velo has the block of layers that swap
    rule.feed_forward_layers = most;
  }
  return rule;
}

// The layers as modules of three parts each.
std::vector<velo_recompute_module> modules_of(const std::vector<recompute_cost>& costs,
                                              std::int64_t layers) {
  std::vector<velo_recompute_module> all;
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto whole = static_cast<std::int32_t>(all.size());
    for (const recompute_cost& each : costs)
      all.push_back({static_cast<std::int32_t>(i), each.kind == VELO_RECOMPUTE_FULL ? -1 : whole,
                     static_cast<std::uint64_t>(each.bytes), 0, each.seconds});
  }
  return all;
}

// The kinds of the modules that were chosen, by layer.
std::vector<layer_recompute> layers_of(const std::vector<velo_recompute_module>& modules,
                                       const std::vector<std::int32_t>& chosen,
                                       const std::vector<recompute_cost>& costs,
                                       std::int64_t layers) {
  std::vector<layer_recompute> all(static_cast<std::size_t>(layers));
  for (std::size_t i = 0; i < modules.size(); ++i) {
    layer_recompute& layer = all[static_cast<std::size_t>(modules[i].layer)];
    if (chosen[i]) layer.kinds |= costs[i % costs.size()].kind;
    layer.first = modules[i].layer;
  }
  return all;
}

// Sets which layers keep attention's sum, and what is recomputed of their experts.
std::vector<layer_recompute> with_level(std::vector<layer_recompute> all,
                                        const memory_settings& memory) {
  for (layer_recompute& each : all) {
    each.keeps_middle = memory.recompute_level > 1 && each.has(VELO_RECOMPUTE_FULL);
    if (memory.recompute == "experts") each.experts = expert_part::computed;
    if (memory.recompute == "dispatch") each.experts = expert_part::dispatched;
    each.load = memory.recompute_load;
  }
  return all;
}

}  // namespace

std::vector<layer_recompute> recompute_of(const memory_settings& memory, std::int64_t layers) {
  if (layers == 0) return {};
  const velo_recompute_rule rule = rule_of(memory, layers);
  std::vector<velo_recompute_layer> found(static_cast<std::size_t>(layers));
  std::vector<layer_recompute> all(found.size());
  velo::recompute_layers(rule, found.data(), layers);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {found[i].kinds, found[i].first};
  return with_level(std::move(all), memory);
}

std::vector<std::int64_t> dealt_by_turns(std::int64_t count,
                                         const std::vector<std::int64_t>& depths) {
  std::vector<std::int64_t> taken(depths.size());
  for (bool takes = true; takes && count > 0;) {
    takes = false;
    for (std::size_t i = 0; i < depths.size() && count > 0; ++i) {
      if (taken[i] == depths[i]) continue;
      ++taken[i], --count;
      takes = true;
    }
  }
  return taken;
}

std::optional<recompute_choice> choose_recompute(const memory_settings& memory, std::int64_t layers,
                                                 const std::vector<recompute_cost>& costs,
                                                 std::int64_t most,
                                                 const recompute_trial& peak_of) {
  if (layers == 0) {  // a rank without any
    const std::optional<std::int64_t> peak = peak_of({});
    return peak ? std::optional(recompute_choice{{}, *peak}) : std::nullopt;
  }
  const velo_recompute_rule rule = rule_of(memory, layers);
  const std::vector<velo_recompute_module> modules = modules_of(costs, layers);
  std::vector<std::int32_t> chosen(modules.size());
  velo_recompute_budget budget = VELO_RECOMPUTE_BUDGET_INIT;
  for (const velo_recompute_module& each : modules)
    if (each.parent < 0) budget.bytes += each.bytes;
  budget.step = std::max<std::uint64_t>(budget.bytes / 1024, 1);
  std::optional<recompute_choice> best, smallest;
  velo_recompute_choice choice;
  do {
    choice = velo::recompute_choose(rule, budget, modules.data(),
                                    static_cast<std::int64_t>(modules.size()), chosen.data());
    recompute_choice tried{with_level(layers_of(modules, chosen, costs, layers), memory)};
    const std::optional<std::int64_t> peak = peak_of(tried.layers);
    if (!peak) return std::nullopt;
    tried.peak = *peak;
    const bool works = tried.peak <= most;
    if (works) best = tried;
    if (!smallest || tried.peak < smallest->peak) smallest = tried;
    (works ? budget.fits : budget.fails) = choice.budget;
    if (!works && choice.bytes <= choice.bytes_least) break;  // nothing else can be released
  } while (!choice.settled);
  if (best) return best;
  // The measurements of parts do not include the memory of a layer while it is recomputed.
  recompute_choice full;
  for (std::int64_t i = 0; i < layers; ++i) full.layers.push_back({VELO_RECOMPUTE_FULL, i});
  full.layers = with_level(std::move(full.layers), memory);
  const std::optional<std::int64_t> peak = peak_of(full.layers);
  if (!peak) return std::nullopt;
  full.peak = *peak;
  return full.peak <= smallest->peak ? full : *smallest;
}

}  // namespace decoder
