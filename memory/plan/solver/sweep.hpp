// Placement in the order of time, for problems of any size: one pass over time, in which a buffer
// that ends leaves a hole and a buffer that begins takes one.
//
// Best fit gives a buffer the smallest hole that is large enough. The pass from both ends puts
// long-lived buffers as low as possible and short-lived ones as high as possible below a ceiling,
// so that neither fragments the other's room; it often reaches a ceiling just above the bound. The
// order of events is sorted once for all passes. A pass costs O(n log n) with best fit and
// O(n * holes) from both ends.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "memory/plan/solver/placement.hpp"

namespace velo::memory {

class plan_sweep {
 public:
  explicit plan_sweep(const std::vector<lifetime>& buffers);

  // Offsets by buffer.
  std::vector<std::int64_t> by_best_fit() const;

  // Places buffers that live longer than `brief` from the bottom, others from the ceiling; a buffer
  // that fits nowhere below the ceiling goes above it. Returns no offsets if there were too many
  // holes or over(), called every few buffers, returned true.
  std::vector<std::int64_t> from_both_ends(std::int64_t brief, std::int64_t ceiling,
                                           const std::function<bool()>& over) const;

  // The length that this fraction of the buffers, 0 to 1, does not exceed.
  std::int64_t length_of(double fraction) const;

 private:
  const std::vector<lifetime>& buffers_;
  std::vector<std::int32_t> begins_, ends_;  // buffers by their beginning, by their end
  std::vector<std::int64_t> lengths_;        // ascending
};

}  // namespace velo::memory
