// Chooses one value from each list so that the sum is exactly a target, if many such choices exist.
//
// Lists with many different sums reach nearly every target in many ways, and Wagner's tree for the
// generalized birthday problem (CRYPTO'02) finds one of these ways quickly. The lists are joined
// into four groups; two groups contribute only pairs with a certain remainder, which are matched
// with pairs of the other two. Finding no sum proves nothing. Cost: 1 to 3 ms at most.
#pragma once

#include <cstdint>
#include <vector>

namespace velo::memory {

// The index of a value in each list; empty: none was found. Values and the target are below 2^62.
std::vector<std::int32_t> find_exact_sum(const std::vector<std::vector<std::int64_t>>& lists,
                                         std::int64_t target);

}  // namespace velo::memory
