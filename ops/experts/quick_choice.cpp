// The groups that are kept, and the margins between neighbors.
#include "ops/experts/quick_choice.hpp"

#include <algorithm>
#include <cmath>

namespace velo::ops {

// Finds the `count` largest of n values; false where one is not further than `apart` from the next.
bool quick_choice::find(float* values, std::int64_t n, std::int64_t count, float apart) const {
  const std::int64_t looked = apart > 0 && count < n ? count + 1 : count;
  kernels_.largest({values, n, looked, found_, places_});
  for (std::int64_t j = 0; apart > 0 && j + 1 < looked; ++j) {
    const float least = apart * std::max(1.0f, std::abs(found_[j]));
    if (!(found_[j] - found_[j + 1] > least)) return false;
  }
  return true;
}

// Makes the values of the other groups NaN, which is never found.
bool quick_choice::keep_groups(bool scored) const {
  const std::int64_t size = rule_.experts / rule_.groups;
  kernels_.group_scores({values_, rule_.groups, size, rule_.sums_two, groups_});
  if (!find(groups_, rule_.groups, rule_.kept_groups, scored ? 2 * margin : 0)) return false;
  std::int32_t* kept = places_;
  std::sort(kept, kept + rule_.kept_groups);
  for (std::int64_t g = 0; g < rule_.groups; ++g) {
    if (kept != places_ + rule_.kept_groups && g == *kept) {
      ++kept;
    } else {
      std::fill_n(values_ + g * size, size, NAN);
    }
  }
  return true;
}

}  // namespace velo::ops
