// Running counts by expert; a counting sort and a selection where draws decide.
#include "ops/experts/gate_places.hpp"

#include <algorithm>

namespace velo::ops {
namespace {

void drop(std::int32_t& choice) {
  choice = -1 - choice;
}

// Drops the tokens of each expert whose draws are not among the `capacity` largest. k is 1.
void drop_by_draws(const gate_places& rule, std::int32_t* indices, const std::int64_t* counts,
                   std::int64_t* scratch) {
  std::int64_t *next = scratch, *order = scratch + rule.experts + 1;
  next[0] = 0;
  for (std::int64_t e = 0; e < rule.experts; ++e) next[e + 1] = next[e] + counts[e];
  for (std::int64_t t = 0; t < rule.tokens; ++t) order[next[indices[t]]++] = t;
  // Each beginning has become the end of its expert.
  for (std::int64_t e = 0; e < rule.experts; ++e) {
    if (counts[e] <= rule.capacity) continue;
    std::int64_t *end = order + next[e], *first = end - counts[e], *cut = first + rule.capacity;
    std::nth_element(first, cut, end, [&](std::int64_t a, std::int64_t b) {
      return rule.draws[a] != rule.draws[b] ? rule.draws[a] > rule.draws[b] : a < b;
    });
    for (; cut != end; ++cut) drop(indices[*cut]);
  }
}

}  // namespace

void place_choices(const gate_places& rule, std::int32_t* indices, std::int32_t* positions,
                   std::int64_t* counts, std::int64_t* scratch) {
  std::fill_n(counts, rule.experts, std::int64_t{0});
  for (std::int64_t f = 0; f < rule.tokens * rule.k; ++f) ++counts[indices[f]];
  if (rule.draws != nullptr) drop_by_draws(rule, indices, counts, scratch);
  std::int64_t* next = scratch;  // the next place at each expert
  std::fill_n(next, rule.experts, std::int64_t{0});
  for (std::int64_t j = 0; j < rule.k; ++j) {
    for (std::int64_t t = 0; t < rule.tokens; ++t) {
      std::int32_t& choice = indices[t * rule.k + j];
      std::int32_t& position = positions[t * rule.k + j];
      position = -1;
      if (choice < 0) continue;
      const std::int64_t place = next[choice]++;
      if (place < rule.capacity) {
        position = static_cast<std::int32_t>(place);
      } else {
        drop(choice);
      }
    }
  }
}

}  // namespace velo::ops
