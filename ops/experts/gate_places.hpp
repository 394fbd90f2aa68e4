// The place of each choice in the buffer of its expert, which has `capacity` places.
//
// First choices have places in the order of tokens, second ones those behind all first choices of
// the expert. A choice whose place would be beyond the capacity is dropped: index -1 - expert,
// position -1. With `draws`, one a token, an expert keeps the tokens of the largest draws, of equal
// ones the first, and these have places in the order of tokens; choices are then first ones only.
// Cost: two passes over the choices on the calling thread, and a selection where draws decide.
#pragma once

#include <cstdint>

namespace velo::ops {

struct gate_places {
  std::int64_t tokens, k, experts, capacity;
  const std::uint32_t* draws;  // or nullptr
};

// Sets positions, drops choices in `indices`, and counts the choices of each expert before that.
// `scratch`: experts + 1 + tokens numbers.
void place_choices(const gate_places& rule, std::int32_t* indices, std::int32_t* positions,
                   std::int64_t* counts, std::int64_t* scratch);

}  // namespace velo::ops
