// Placement in the order of time, for problems of any size: time passes once, what ends leaves a
// hole, what begins takes one.
//
// Without foresight a buffer takes the least hole that is large enough. With it, buffers that live
// long go as low as they can and those that live briefly as high as they can below a ceiling, so
// that the ones do not cut up the room of the others; a ceiling just above the bound is reached
// surprisingly often. The order of events is worked out once for all passes. A pass costs
// O(n log n) without foresight, O(n * holes) with it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "memory/plan/placement.hpp"

namespace velo::memory {

class plan_sweep {
 public:
  explicit plan_sweep(const std::vector<lifetime>& buffers);

  // Offsets by buffer.
  std::vector<std::int64_t> by_best_fit() const;

  // Those that live longer than `brief` from the bottom, others from the ceiling. What finds no
  // hole below it lies above. Empty: there were so many holes that the pass was not worth its end,
  // or it was over(), which is asked every few buffers, before that.
  std::vector<std::int64_t> from_both_ends(std::int64_t brief, std::int64_t ceiling,
                                           const std::function<bool()>& over) const;

  // The length that so large a part of the buffers, 0 to 1, does not exceed.
  std::int64_t length_of(double part) const;

 private:
  const std::vector<lifetime>& buffers_;
  std::vector<std::int32_t> begins_, ends_;  // buffers by their beginning, by their end
  std::vector<std::int64_t> lengths_;        // ascending
};

}  // namespace velo::memory
