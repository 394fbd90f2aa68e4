// The multiple-choice knapsack: one option of each class, so that bytes stay within a budget and
// seconds are least; exact in bytes.
//
// The relaxed problem, in which options of a class may be mixed, has a greedy solution; it gives a
// feasible choice and a bound, which differ in one class alone. The search then adds classes, those
// whose rate of bytes to seconds is closest to the relaxed solution's first. It keeps every partial
// choice that no other beats in both bytes and seconds and that the remaining classes could bring
// below the best choice so far. Few partial choices survive, so that the cost grows with the gap
// instead of the budget. Where bytes and seconds are proportional the gap stays open, but a sum
// that equals the budget to the byte closes it (exact_sum.hpp). 128 classes of 16 options take 0.1
// to 5 ms; where they are nearly proportional the search ends early, with a bound mostly within
// 1e-4.
#pragma once

#include <cstdint>
#include <vector>

namespace velo::memory {

struct knapsack_option {
  std::int64_t bytes;
  double seconds;
};

// Bytes ascend and seconds descend, both strictly.
using knapsack_class = std::vector<knapsack_option>;

struct knapsack_choice {
  std::vector<std::int32_t> picked;  // an option of each class
  std::int64_t bytes = 0;
  double seconds = 0;
  double bound = 0;  // no choice takes less; `seconds` unless the work allowed ran out
};

// The bytes that the first options need: the least budget.
std::int64_t least_bytes(const std::vector<knapsack_class>& classes);

// The budget is least_bytes or more; the sum of all bytes fits 63 bits.
knapsack_choice choose(const std::vector<knapsack_class>& classes, std::int64_t budget);

}  // namespace velo::memory
