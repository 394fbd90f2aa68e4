// Which layers make again in the backward pass what they made in the forward pass, and what of it.
//
// What is made again comes from the same operators on the same numbers: losses have the same bits
// with every kind.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/settings.hpp"

namespace decoder {

struct layer_recompute {
  velo_recompute_kind kinds = VELO_RECOMPUTE_NONE;  // bits
  std::int64_t first = 0;  // the layer from whose input this one is made again; of FULL

  bool has(velo_recompute_kind kind) const { return (kinds & kind) != 0; }
};

// For every layer of the model, as the settings say; with `adaptive` nothing so far.
std::vector<layer_recompute> recompute_of(const memory_settings& memory, std::int64_t layers);

// What a layer keeps less with a kind, and how long it takes to make that again.
struct recompute_cost {
  velo_recompute_kind kind;  // FULL first, then its parts
  std::int64_t bytes;
  double seconds;
};

// The kinds that take least time among those with which the model fits, which are tried. Empty when
// none does.
std::vector<layer_recompute> choose_recompute(
    const memory_settings& memory, std::int64_t layers, const std::vector<recompute_cost>& costs,
    const std::function<bool(const std::vector<layer_recompute>&)>& fits);

}  // namespace decoder
