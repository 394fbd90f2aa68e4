// The layers, and the parts of layers, that are recomputed in the backward pass.
//
// The same operators see the same numbers again: losses have the same bits with every kind.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/settings.hpp"

namespace decoder {

struct layer_recompute {
  velo_recompute_kind kinds = VELO_RECOMPUTE_NONE;  // bits
  std::int64_t first = 0;  // FULL: the layer from whose input this one is recomputed

  bool has(velo_recompute_kind kind) const { return (kinds & kind) != 0; }
};

// The recompute of each layer by the settings; nothing yet with `adaptive`.
std::vector<layer_recompute> recompute_of(const memory_settings& memory, std::int64_t layers);

// The memory that a kind saves in a layer, and the time of recomputing it.
struct recompute_cost {
  velo_recompute_kind kind;  // FULL first, then its parts
  std::int64_t bytes;
  double seconds;
};

// The kinds that take least time among those with which the model fits; each is tried. Empty when
// none fits.
std::vector<layer_recompute> choose_recompute(
    const memory_settings& memory, std::int64_t layers, const std::vector<recompute_cost>& costs,
    const std::function<bool(const std::vector<layer_recompute>&)>& fits);

}  // namespace decoder
