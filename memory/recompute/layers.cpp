// Rules for layers, and the rules that exclude each other.
#include "memory/recompute/layers.hpp"

#include <algorithm>
#include <limits>

#include "core/failure.hpp"

namespace velo::memory {
namespace {

using core::fail;
using core::text;

// Limit of a model's layers, and of every other count.
constexpr std::int32_t most_layers = 1 << 20;

void require_range(std::int32_t value, std::int32_t least, std::int32_t most, const char* field) {
  if (value >= least && value <= most) return;
  fail(VELO_ERR_ARGUMENT, text("rule.%s", field), text("%d to %d", least, most), text("%d", value));
}

[[noreturn]] void refuse_beside(const char* what, const char* expected, const char* got) {
  fail(VELO_ERR_ARGUMENT, text("rule.%s", what), expected, got);
}

const char* name_of(velo_recompute_method method) {
  constexpr const char* names[] = {
      "VELO_RECOMPUTE_METHOD_NONE",      "VELO_RECOMPUTE_METHOD_FULL",
      "VELO_RECOMPUTE_METHOD_BLOCK",     "VELO_RECOMPUTE_METHOD_UNIFORM",
      "VELO_RECOMPUTE_METHOD_SELECTIVE", "VELO_RECOMPUTE_METHOD_ADAPTIVE"};
  return names[method];
}

void check_numbers(const velo_recompute_rule& rule) {
  require_range(rule.method, 0, VELO_RECOMPUTE_METHOD_ADAPTIVE, "method");
  require_range(rule.layers, 1, most_layers, "layers");
  require_range(rule.pipeline_size, 1, most_layers, "pipeline_size");
  require_range(rule.pipeline_rank, 0, rule.pipeline_size - 1, "pipeline_rank");
  require_range(rule.chunks, 1, rule.pipeline_size > 1 ? most_layers : 1, "chunks");
  require_range(rule.micro_batches, 0, most_layers, "micro_batches");
  const std::int64_t chunks = std::int64_t{rule.pipeline_size} * rule.chunks;
  if (rule.layers % chunks != 0) {
    fail(VELO_ERR_ARGUMENT, "rule.layers",
         core::concat("a multiple of pipeline_size * chunks, ", chunks), text("%d", rule.layers));
  }
  if (rule.chunks > 1 && rule.micro_batches % rule.pipeline_size != 0) {
    fail(
        VELO_ERR_ARGUMENT, "rule.micro_batches",
        text("a multiple of pipeline_size, %d, where there are several chunks", rule.pipeline_size),
        text("%d", rule.micro_batches));
  }
  const std::int32_t least = rule.method == VELO_RECOMPUTE_METHOD_UNIFORM ? 1 : -1;
  require_range(rule.count, least, most_layers, "count");
  require_range(rule.per_stage, 0, 1, "per_stage");
  require_range(rule.activation, 0, 1, "activation");
  require_range(rule.activation_layers, -1, most_layers, "activation_layers");
  require_range(rule.norm, 0, 1, "norm");
  require_range(rule.norm_layers, -1, most_layers, "norm_layers");
  require_range(rule.beside, 0, 2 * VELO_RECOMPUTE_BESIDE_BALANCE - 1, "beside");
  require_range(rule.feed_forward_layers, -1, most_layers, "feed_forward_layers");
}

bool swaps_attention(const velo_recompute_rule& rule) {
  return (rule.beside & VELO_RECOMPUTE_BESIDE_SWAP_ATTENTION) != 0;
}

// Checks the recomputation of activations and norms, which applies to layers that are not
// recomputed otherwise.
void check_finer_ways(const velo_recompute_rule& rule) {
  if (rule.method == VELO_RECOMPUTE_METHOD_NONE || rule.method == VELO_RECOMPUTE_METHOD_BLOCK)
    return;
  for (const bool norm : {false, true}) {
    if ((norm ? rule.norm : rule.activation) == 0) continue;
    refuse_beside(norm ? "norm" : "activation",
                  "0, or the method VELO_RECOMPUTE_METHOD_NONE or VELO_RECOMPUTE_METHOD_BLOCK",
                  text("1 beside %s", name_of(rule.method)));
  }
}

void check_bubble(const velo_recompute_rule& rule) {
  if (rule.chunks == 1)
    refuse_beside("beside", "several chunks for VELO_RECOMPUTE_BESIDE_BUBBLE", "chunks = 1");
  if (rule.method != VELO_RECOMPUTE_METHOD_NONE)
    refuse_beside("method", "VELO_RECOMPUTE_METHOD_NONE beside VELO_RECOMPUTE_BESIDE_BUBBLE",
                  name_of(rule.method));
  for (const std::int32_t other : {VELO_RECOMPUTE_BESIDE_ADVANCE, VELO_RECOMPUTE_BESIDE_BALANCE}) {
    if ((rule.beside & other) != 0)
      refuse_beside("beside", "VELO_RECOMPUTE_BESIDE_BUBBLE without ADVANCE and BALANCE",
                    text("%d", rule.beside));
  }
}

void check_advance(const velo_recompute_rule& rule) {
  if (rule.chunks == 1 || rule.layers != rule.pipeline_size * rule.chunks)
    refuse_beside(
        "beside", "several chunks of one layer each for VELO_RECOMPUTE_BESIDE_ADVANCE",
        text("%d layers in %d chunks of %d stages", rule.layers, rule.chunks, rule.pipeline_size));
  if (rule.method != VELO_RECOMPUTE_METHOD_BLOCK || rule.count == 0)
    refuse_beside("method",
                  "VELO_RECOMPUTE_METHOD_BLOCK of some layers beside VELO_RECOMPUTE_BESIDE_ADVANCE",
                  text("%s, count = %d", name_of(rule.method), rule.count));
  if ((rule.beside & VELO_RECOMPUTE_BESIDE_AMPIPE) != 0)
    refuse_beside("beside", "VELO_RECOMPUTE_BESIDE_ADVANCE without AMPIPE",
                  text("%d", rule.beside));
}

void check_adaptive(const velo_recompute_rule& rule) {
  constexpr std::int32_t excluded = VELO_RECOMPUTE_BESIDE_BUBBLE | VELO_RECOMPUTE_BESIDE_ADVANCE |
                                    VELO_RECOMPUTE_BESIDE_LIFETIMES |
                                    VELO_RECOMPUTE_BESIDE_SWAP_ATTENTION |
                                    VELO_RECOMPUTE_BESIDE_AMPIPE;
  if ((rule.beside & excluded) != 0)
    refuse_beside("beside", "nothing but BALANCE for VELO_RECOMPUTE_METHOD_ADAPTIVE",
                  text("%d", rule.beside));
}

void check_balance(const velo_recompute_rule& rule) {
  if (rule.method == VELO_RECOMPUTE_METHOD_FULL || rule.method == VELO_RECOMPUTE_METHOD_BLOCK ||
      rule.method == VELO_RECOMPUTE_METHOD_UNIFORM)
    refuse_beside("method", "one that leaves experts to VELO_RECOMPUTE_BESIDE_BALANCE",
                  name_of(rule.method));
}

// The largest number of micro-batches in flight in a chunk: their forward pass has run and their
// backward pass has not. It is reached after the warm-up and one more forward pass.
std::int32_t in_flight(const velo_recompute_rule& rule, std::int32_t chunk) {
  const std::int64_t size = rule.pipeline_size, rank = rule.pipeline_rank, chunks = rule.chunks;
  const std::int64_t batches =
      rule.micro_batches > 0 ? rule.micro_batches : std::numeric_limits<std::int32_t>::max();
  if (chunks == 1) return static_cast<std::int32_t>(std::min(size - rank, batches));
  std::int64_t passes = 2 * (size - 1 - rank) + (chunks - 1) * size + 1;
  if (batches == size) passes = batches * chunks;  // everything is warm-up
  passes = std::min(passes, batches * chunks);
  const std::int64_t round = size * chunks;  // `size` micro-batches through every chunk in turn
  return static_cast<std::int32_t>(
      passes / round * size + std::clamp<std::int64_t>(passes % round - chunk * size, 0, size));
}

// Whether a layer is among the `count` layers from priority `from` on; count -1: among all of
// those.
bool is_next(std::int64_t priority, std::int64_t from, std::int32_t count) {
  return priority >= from && (count < 0 || priority < from + count);
}

// The method `block` counts the layers that swap attention if the rule swaps it; no layer is then
// recomputed whole.
void give_kinds(const velo_recompute_rule& rule, std::int64_t priority,
                velo_recompute_layer& layer) {
  const bool block = rule.method == VELO_RECOMPUTE_METHOD_BLOCK, swaps = swaps_attention(rule);
  const bool listed = block && is_next(priority, 0, rule.count);
  const std::int64_t whole = !block || swaps ? 0 : rule.count < 0 ? rule.layers : rule.count;
  if (rule.method == VELO_RECOMPUTE_METHOD_SELECTIVE) layer.kinds = VELO_RECOMPUTE_SELECTIVE;
  if (rule.method == VELO_RECOMPUTE_METHOD_FULL || rule.method == VELO_RECOMPUTE_METHOD_UNIFORM ||
      priority < whole)
    layer.kinds = VELO_RECOMPUTE_FULL;
  layer.swap = swaps && layer.kinds != VELO_RECOMPUTE_FULL && (listed || !block) ? 1 : 0;
  if (layer.swap != 0 && is_next(priority, 0, rule.feed_forward_layers)) {
    layer.kinds |= VELO_RECOMPUTE_FEED_FORWARD;
  } else if (rule.activation != 0 && is_next(priority, whole, rule.activation_layers)) {
    layer.kinds |= VELO_RECOMPUTE_ACTIVATION;
  }
  if (rule.norm != 0 && is_next(priority, whole, rule.norm_layers))
    layer.kinds |= VELO_RECOMPUTE_NORM;
}

}  // namespace

void check_rule(const velo_recompute_rule& rule) {
  check_numbers(rule);
  check_finer_ways(rule);
  if (rule.method == VELO_RECOMPUTE_METHOD_ADAPTIVE) check_adaptive(rule);
  if ((rule.beside & VELO_RECOMPUTE_BESIDE_BUBBLE) != 0) check_bubble(rule);
  if ((rule.beside & VELO_RECOMPUTE_BESIDE_ADVANCE) != 0) check_advance(rule);
  if ((rule.beside & VELO_RECOMPUTE_BESIDE_BALANCE) != 0) check_balance(rule);
  if (rule.feed_forward_layers != 0 && !swaps_attention(rule))
    refuse_beside("feed_forward_layers", "0 without VELO_RECOMPUTE_BESIDE_SWAP_ATTENTION",
                  text("%d", rule.feed_forward_layers));
}

std::vector<velo_recompute_layer> layers_of(const velo_recompute_rule& rule) {
  check_rule(rule);
  const std::int32_t each = rule.layers / (rule.pipeline_size * rule.chunks);
  std::vector<velo_recompute_layer> all;
  all.reserve(static_cast<std::size_t>(each) * rule.chunks);
  for (std::int32_t chunk = 0; chunk < rule.chunks; ++chunk) {
    const std::int32_t flying = in_flight(rule, chunk);
    for (std::int32_t position = 0; position < each; ++position) {
      const auto index = static_cast<std::int32_t>(all.size());
      const std::int64_t priority =
          rule.per_stage != 0 ? std::int64_t{position} * rule.chunks + chunk : position;
      velo_recompute_layer layer{};
      layer.layer = (chunk * rule.pipeline_size + rule.pipeline_rank) * each + position;
      layer.chunk = chunk;
      layer.first = index;
      layer.in_flight = flying;
      if (rule.method == VELO_RECOMPUTE_METHOD_UNIFORM) layer.first = index - position % rule.count;
      give_kinds(rule, priority, layer);
      all.push_back(layer);
    }
  }
  return all;
}

}  // namespace velo::memory
