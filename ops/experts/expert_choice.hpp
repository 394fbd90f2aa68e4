// The choice of k experts for a token, and of the tokens that an expert of limited capacity keeps.
//
// Plain code on doubles. Without bias and sums the order of scores is that of logits, which are
// compared as they are; otherwise scores are computed here, so that no kernel's rounding decides.
// NaN counts as the lowest. Cost: a pass over the experts, and an insertion where one is chosen.
#pragma once

#include <cstdint>

namespace velo::ops {

struct choice_rule {
  std::int64_t experts, k;
  std::int64_t groups, kept_groups;  // 1 and 1: all experts are one group
  bool sums_two;                     // a group's score: the sum of its two largest, or the largest
  bool sigmoid;
  const float* bias;  // one an expert, or null
};

// Whether scores are compared; else the logits are, in whose order scores lie.
inline bool compares_scores(const choice_rule& rule) {
  return rule.bias != nullptr || (rule.groups > 1 && rule.sums_two);
}

// `values`: the logits; becomes what is compared. `chosen`: k experts, the best first.
void choose_experts(const choice_rule& rule, double* values, std::int32_t* chosen);

// Drops choices beyond `capacity` of each expert: a dropped one has weight 0 and index -1 - expert.
// An expert keeps its first tokens, or those of the largest weights, of equal ones the first.
// `scratch`: experts + 1 + tokens k numbers.
struct capacity_rule {
  std::int64_t tokens, k, experts, capacity;
  bool by_position;
};
void drop_beyond_capacity(const capacity_rule& rule, std::int32_t* indices, float* weights,
                          std::int64_t* scratch);

}  // namespace velo::ops
