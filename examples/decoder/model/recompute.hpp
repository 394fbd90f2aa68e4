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

// The part of a layer with experts that FEED_FORWARD recomputes: all of it but the choices; or the
// results that experts compute from their rows; or these rows, too, which are dispatched again.
enum class expert_part { all, computed, dispatched };

struct layer_recompute {
  velo_recompute_kind kinds = VELO_RECOMPUTE_NONE;  // bits
  std::int64_t first = 0;     // FULL: the layer from whose input this one is recomputed
  bool keeps_middle = false;  // FULL: but for attention's sum, which the forward pass saves
  expert_part experts = expert_part::all;
  double load = 0;  // of `computed`: recomputed above this multiple of the mean load; 0: always

  bool has(velo_recompute_kind kind) const { return (kinds & kind) != 0; }
  bool dispatches_again() const {
    return has(VELO_RECOMPUTE_FEED_FORWARD) && experts == expert_part::dispatched;
  }
};

// The rows of one expert above which its rank recomputes: `scale` times the mean of all experts, of
// ranks with `rows` tokens each that choose `choices` experts. MindSpeed's rule, by which a rank
// looks at its own experts.
inline double recompute_limit(std::int64_t rows, std::int64_t ranks, std::int64_t choices,
                              std::int64_t experts, double scale) {
  return static_cast<double>(rows) * static_cast<double>(ranks * choices) * scale /
         static_cast<double>(experts);
}

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
