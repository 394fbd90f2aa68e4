// The layers, and the parts of layers, that are recomputed in the backward pass.
//
// The same operators see the same numbers again: losses have the same bits with every kind.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/settings.hpp"

namespace decoder {

struct layer_recompute {
  velo_recompute_kind kinds = VELO_RECOMPUTE_NONE;  // bits
  std::int64_t first = 0;     // FULL: the layer from whose input this one is recomputed
  bool keeps_middle = false;  // FULL: but for attention's sum, which the forward pass saves

  bool has(velo_recompute_kind kind) const { return (kinds & kind) != 0; }
};

// The recompute of each layer by the settings; nothing yet with `adaptive`.
std::vector<layer_recompute> recompute_of(const memory_settings& memory, std::int64_t layers);

// How many of `count` layers each stage has, if the first layers of all stages come before the
// second ones; depths: the layers of each.
std::vector<std::int64_t> dealt_by_turns(std::int64_t count,
                                         const std::vector<std::int64_t>& depths);

// The kinds that are measured: FULL, then its parts.
inline constexpr velo_recompute_kind measured_kinds[] = {
    VELO_RECOMPUTE_FULL, VELO_RECOMPUTE_SELECTIVE, VELO_RECOMPUTE_ACTIVATION, VELO_RECOMPUTE_NORM};

// The memory that a kind saves in a layer, and the time of recomputing it.
struct recompute_cost {
  velo_recompute_kind kind;
  std::int64_t bytes;
  double seconds;
};

// The kinds of each layer, with the most bytes that a step then holds.
struct recompute_choice {
  std::vector<layer_recompute> layers;
  std::int64_t peak = 0;
};

// Tries the kinds of a layer and returns the peak; nothing ends the search.
using recompute_trial =
    std::function<std::optional<std::int64_t>(const std::vector<layer_recompute>&)>;

// The choice that takes least time among those that are tried and whose peak is at most `most`
// bytes. Where there is none, the one with the least peak; nothing where a trial ended the search.
std::optional<recompute_choice> choose_recompute(const memory_settings& memory, std::int64_t layers,
                                                 const std::vector<recompute_cost>& costs,
                                                 std::int64_t most, const recompute_trial& peak_of);

}  // namespace decoder
