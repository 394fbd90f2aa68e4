// One value of each list, so that all sum to a target: found where it is one of many.
//
// Of lists with many different sums nearly every target is a sum many times over, and one of them
// is found at once (Wagner's tree for the generalized birthday problem, CRYPTO'02): lists join in
// four groups; of two groups only pairs with one remainder are looked at, and a pair of these meets
// one of the others. None found says nothing: there may be one. Cost: 1 to 3 ms at most.
#pragma once

#include <cstdint>
#include <vector>

namespace velo::memory {

// The place of a value in each list; empty: none was found. Values and the target are below 2^62.
std::vector<std::int32_t> find_exact_sum(const std::vector<std::vector<std::int64_t>>& lists,
                                         std::int64_t target);

}  // namespace velo::memory
