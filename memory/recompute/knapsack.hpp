// One option of each class, so that bytes stay within a budget and seconds are least: the
// multiple-choice knapsack, solved exactly in bytes.
//
// The relaxed problem, in which options of a class may be mixed, has a greedy solution; it gives a
// choice that fits and a bound, which differ in one class alone. From there classes come in, those
// that trade bytes for seconds nearest to the going rate first, and every partial choice is kept
// that no other beats in both bytes and seconds, and that the rates of the classes still to come
// could bring below the best choice so far. Few partial choices survive that, whatever the sizes
// are: cost grows with the gap, not with the budget. The gap stays open where bytes and seconds go
// together, but there a sum that meets the budget to the byte closes it (exact_sum.hpp). 128
// classes of 16 options take 0.1 to 5 ms; where they nearly go together search ends short of the
// best, with a bound that is mostly less than 1e-4 away.
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

// What the first options need: the least budget.
std::int64_t least_bytes(const std::vector<knapsack_class>& classes);

// The budget is least_bytes or more; the sum of all bytes fits 63 bits.
knapsack_choice choose(const std::vector<knapsack_class>& classes, std::int64_t budget);

}  // namespace velo::memory
