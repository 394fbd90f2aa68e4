// A choice of one value from each list whose sum is exactly a target, where there are many.
//
// Lists with many different sums reach nearly every target in many ways, and one of them is found
// at once by Wagner's tree for the generalized birthday problem (CRYPTO'02): the lists join into
// four groups; two groups contribute only pairs with a certain remainder, and these are matched
// with pairs of the other two. Finding none proves nothing. Cost: 1 to 3 ms at most.
#pragma once

#include <cstdint>
#include <vector>

namespace velo::memory {

// The index of a value in each list; empty: none was found. Values and the target are below 2^62.
std::vector<std::int32_t> find_exact_sum(const std::vector<std::vector<std::int64_t>>& lists,
                                         std::int64_t target);

}  // namespace velo::memory
