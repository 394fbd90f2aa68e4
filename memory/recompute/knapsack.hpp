// The multiple-choice knapsack: chooses one option of each class so that bytes stay within a budget
// and seconds are minimal; exact in bytes.
//
// The relaxed problem, in which options of a class may be mixed, has a greedy solution. It gives a
// feasible choice and a bound, which differ in only one class. The search then adds classes, first
// those whose rate of bytes to seconds is closest to the relaxed solution's. It keeps every partial
// choice that is not dominated in bytes and seconds and that the remaining classes could bring
// below the best choice so far. Few partial choices survive, so the cost grows with the gap instead
// of the budget. If bytes and seconds are proportional the gap stays open, but a sum that equals
// the budget to the byte closes it (exact_sum.hpp). 128 classes of 16 options take 0.1 to 5 ms;
// nearly proportional ones end the search early, with a bound mostly within 1e-4.
#pragma once

#include <cstdint>
#include <vector>

namespace velo::memory {

struct knapsack_option {
  std::int64_t bytes;
  double seconds;
};

// Both bytes ascend and seconds descend strictly.
using knapsack_class = std::vector<knapsack_option>;

struct knapsack_choice {
  std::vector<std::int32_t> picked;  // the chosen option of each class
  std::int64_t bytes = 0;
  double seconds = 0;
  double bound = 0;  // no choice takes less; equals `seconds` unless the search ran out of work
};

// The least budget: the bytes of every class's first option.
std::int64_t least_bytes(const std::vector<knapsack_class>& classes);

// The budget is at least least_bytes(); the sum of all bytes fits 63 bits.
knapsack_choice choose(const std::vector<knapsack_class>& classes, std::int64_t budget);

}  // namespace velo::memory
