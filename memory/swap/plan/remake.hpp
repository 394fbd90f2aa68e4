// The cost of recomputing a dropped buffer: the time of the stage in which its life began and,
// recursively, of the stages that make the inputs that are no longer in memory.
//
// A buffer that was written after that stage cannot be recomputed, nor can one that depends on it.
// Buffers made on the way, including other outputs of the same stages, take memory until the end.
// Cost: a step for each buffer on the way, up to a limit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "memory/swap/plan/stages.hpp"

namespace velo::memory {

class swap_remake {
 public:
  struct cost {
    double seconds = 0;
    std::int64_t bytes = 0;  // of buffers made on the way
  };
  static constexpr cost impossible = {std::numeric_limits<double>::infinity(), 0};

  explicit swap_remake(const swap_stages& step);

  // The cost of recomputing a buffer at the beginning of a stage, by at most `most` stages.
  // is_here(j): whether buffer j is in memory.
  template <class F>
  cost of(std::int32_t buffer, std::int32_t stage, std::size_t most, F&& is_here) const;

 private:
  bool is_as_used(std::int32_t buffer, std::int32_t used, std::int32_t now) const;

  const swap_stages& step_;
  std::vector<std::vector<std::int32_t>> inputs_, outputs_;  // by stage
};

template <class F>
swap_remake::cost swap_remake::of(std::int32_t buffer, std::int32_t stage, std::size_t most,
                                  F&& is_here) const {
  std::vector<std::int32_t> stages = {step_.buffers[buffer].first};
  cost all;
  if (!is_as_used(buffer, stages[0], stage)) return impossible;
  for (std::size_t x = 0; x < stages.size(); ++x) {
    if (stages.size() > most) return impossible;
    all.seconds += step_.seconds[stages[x]];
    for (const std::int32_t o : outputs_[stages[x]])
      if (o != buffer) all.bytes += step_.buffers[o].size;
    for (const std::int32_t i : inputs_[stages[x]]) {
      if (!is_as_used(i, stages[x], stage)) return impossible;
      const std::int32_t first = step_.buffers[i].first;
      if (is_here(i) || std::find(stages.begin(), stages.end(), first) != stages.end()) continue;
      stages.push_back(first);
    }
  }
  return all;
}

}  // namespace velo::memory
