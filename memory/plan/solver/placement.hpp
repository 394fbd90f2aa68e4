// Static placement: addresses for buffers whose lifetimes are known beforehand, so that buffers
// alive together do not overlap and the highest address stays low.
//
// Finding the lowest height is NP-hard. The height is at least the largest sum of sizes alive at
// one time, and this bound is reached more often than not. Heuristics come first, in the order of
// time (solver/sweep.hpp) and by orders that learn (solver/orders.hpp); then a search
// (solver/search.hpp) closes the gap within the time allowed (solver/component.hpp). The remaining
// gap is reported. On one thread the same input, seed and enough time give the same placement on
// every machine; several threads search in different ways until one succeeds, and the lowest
// placement counts.
#pragma once

#include <cstdint>
#include <vector>

namespace velo::memory {

// A buffer of the problem: alive in the half-open range of times [lower, upper), size bytes.
struct lifetime {
  std::int64_t lower;
  std::int64_t upper;
  std::int64_t size;
};

struct placement {
  std::vector<std::int64_t>
      offsets;                   // by buffer; aligned as the sizes are: a caller rounds sizes up
  std::int64_t height = 0;       // highest offset + size
  std::int64_t lower_bound = 0;  // largest sum of sizes alive at one time
};

struct plan_limits {
  std::int64_t capacity = 0;  // a height that is low enough; 0: the lower bound alone is
  double seconds = 10;        // of search, counted from the call
  std::uint64_t seed = 1;
  int threads = 1;  // that search, the caller's one of them
};

// The best placement found. Every lower < upper, every size > 0, the sum of all sizes fits 63 bits.
// O(n log n) for the bound and each sweep, O(n * n) for each round of orders (left out for more
// than 20,000 buffers), then search until the height is low enough or time is up.
placement place(const std::vector<lifetime>& buffers, const plan_limits& limits);

// The largest sum of sizes alive at one time. O(n log n).
std::int64_t largest_live(const std::vector<lifetime>& buffers);

}  // namespace velo::memory
