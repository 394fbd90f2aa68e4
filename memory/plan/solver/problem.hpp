// The structure of a placement problem that search walks over: maximal sets of buffers alive at one
// time ("moments"), in the order of time, and which buffers overlap.
//
// Nothing changes between two events, and a moment whose buffers are all alive in a neighboring one
// adds nothing: what remains are the maximal cliques of an interval graph, at most one for each
// buffer. Every buffer spans a contiguous range of them, and two buffers overlap when these ranges
// do. O(n log n + total), where total counts buffers over all moments and over all overlaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/plan/solver/placement.hpp"

namespace velo::memory {

// Lists of numbers, one after another in one array.
struct number_lists {
  std::vector<std::int32_t> numbers;
  std::vector<std::size_t> begins = {0};  // of each list, and the end of the last

  struct list {
    const std::int32_t* first;
    const std::int32_t* last;
    const std::int32_t* begin() const { return first; }
    const std::int32_t* end() const { return last; }
  };
  list operator[](std::size_t which) const {
    return {numbers.data() + begins[which], numbers.data() + begins[which + 1]};
  }
};

struct plan_problem {
  std::vector<std::int64_t> sizes;
  std::vector<std::int32_t> first, last;  // moments that a buffer spans, both inclusive
  number_lists moments;                   // the buffers of each moment
  number_lists overlapping;               // the buffers that overlap each buffer in time
  std::vector<std::int32_t> duplicate;    // an earlier buffer of the same size and span, or -1

  int buffers() const { return static_cast<int>(sizes.size()); }
  int moment_count() const { return static_cast<int>(moments.begins.size()) - 1; }
};

// Returns the problem of the listed buffers, or an empty one if a list would have more than `most`
// numbers.
plan_problem make_problem(const std::vector<lifetime>& all, const std::vector<std::int32_t>& named,
                          std::size_t most);

// Divides buffers into groups that do not overlap in time, in the order of time. O(n log n).
std::vector<std::vector<std::int32_t>> separate(const std::vector<lifetime>& all);

}  // namespace velo::memory
