// Insertion into a short sorted list, over experts and over groups; a selection for capacity.
#include "ops/experts/expert_choice.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace velo::ops {
namespace {

// Inserts candidate `i` into the list of the `most` best so far; equal ones stay behind.
void insert(const double* values, std::int32_t i, std::int32_t* list, std::int64_t& count,
            std::int64_t most) {
  if (count == most && !(values[i] > values[list[most - 1]])) return;
  std::int64_t at = count < most ? count++ : most - 1;
  for (; at > 0 && values[i] > values[list[at - 1]]; --at) list[at] = list[at - 1];
  list[at] = i;
}

// The values that are compared.
void compare_scores(const choice_rule& rule, double* values) {
  const std::int64_t n = rule.experts;
  const double lowest = -INFINITY;
  if (compares_scores(rule)) {
    double largest = lowest, sum = 0;
    for (std::int64_t e = 0; e < n; ++e) largest = std::max(largest, values[e]);
    for (std::int64_t e = 0; e < n; ++e) {
      values[e] = rule.sigmoid ? 1 / (1 + std::exp(-values[e])) : std::exp(values[e] - largest);
      sum += values[e];
    }
    for (std::int64_t e = 0; e < n; ++e) {
      if (!rule.sigmoid) values[e] /= sum;
      if (rule.bias != nullptr) values[e] += static_cast<double>(rule.bias[e]);
    }
  }
  for (std::int64_t e = 0; e < n; ++e)
    if (std::isnan(values[e])) values[e] = lowest;
}

double score_of_group(const double* values, std::int64_t size, bool sums_two) {
  double first = -INFINITY, second = -INFINITY;
  for (std::int64_t i = 0; i < size; ++i) {
    if (values[i] > first) {
      second = first, first = values[i];
    } else if (values[i] > second) {
      second = values[i];
    }
  }
  return sums_two && size > 1 ? first + second : first;
}

}  // namespace

void choose_experts(const choice_rule& rule, double* values, std::int32_t* chosen) {
  compare_scores(rule, values);
  std::int64_t count = 0;
  if (rule.groups <= 1) {
    for (std::int64_t e = 0; e < rule.experts; ++e)
      insert(values, static_cast<std::int32_t>(e), chosen, count, rule.k);
    return;
  }
  // The scores of groups and the kept ones lie behind the values.
  const std::int64_t size = rule.experts / rule.groups;
  double* scores = values + rule.experts;
  auto* kept = reinterpret_cast<std::int32_t*>(scores + rule.groups);
  std::int64_t kept_count = 0;
  for (std::int64_t g = 0; g < rule.groups; ++g) {
    scores[g] = score_of_group(values + g * size, size, rule.sums_two);
    if (std::isnan(scores[g])) scores[g] = -INFINITY;
    insert(scores, static_cast<std::int32_t>(g), kept, kept_count, rule.kept_groups);
  }
  std::sort(kept, kept + kept_count);  // so that ties go to the lower index
  for (std::int64_t i = 0; i < kept_count; ++i)
    for (std::int64_t e = kept[i] * size; e < (kept[i] + 1) * size; ++e)
      insert(values, static_cast<std::int32_t>(e), chosen, count, rule.k);
}

void drop_beyond_capacity(const capacity_rule& rule, std::int32_t* indices, float* weights,
                          std::int64_t* scratch) {
  const std::int64_t all = rule.tokens * rule.k;
  std::int64_t *start = scratch, *order = scratch + rule.experts + 1;
  std::memset(start, 0, static_cast<std::size_t>(rule.experts + 1) * sizeof(std::int64_t));
  for (std::int64_t f = 0; f < all; ++f) ++start[indices[f] + 1];
  for (std::int64_t e = 0; e < rule.experts; ++e) start[e + 1] += start[e];
  for (std::int64_t f = 0; f < all; ++f) order[start[indices[f]]++] = f;
  // Each beginning has become the end of its expert.
  for (std::int64_t e = 0; e < rule.experts; ++e) {
    std::int64_t* first = order + (e == 0 ? 0 : start[e - 1]);
    std::int64_t* end = order + start[e];
    if (end - first <= rule.capacity) continue;
    std::int64_t* dropped = first + rule.capacity;
    if (!rule.by_position) {
      const auto weight = [&](std::int64_t f) {
        return std::isnan(weights[f]) ? -INFINITY : weights[f];
      };
      std::nth_element(first, dropped, end, [&](std::int64_t a, std::int64_t b) {
        return weight(a) != weight(b) ? weight(a) > weight(b) : a < b;
      });
    }
    for (; dropped != end; ++dropped) {
      indices[*dropped] = static_cast<std::int32_t>(-1 - e);
      weights[*dropped] = 0;
    }
  }
}

}  // namespace velo::ops
