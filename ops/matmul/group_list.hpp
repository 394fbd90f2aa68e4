// The list of groups that grouped operators take: as integers of the host or as a tensor, ends or
// counts.
//
// Invariant: a wrong list is refused before anything is written. Integers are known when a call is
// made, so they are checked then; a tensor's are data, checked when the call runs.
#pragma once

#include <cstdint>

#include "core/host/arena.hpp"
#include "velo/ops_matmul.h"

namespace velo::ops {

struct group_list {
  const velo_ints* ints;      // one of the two
  const velo_tensor* tensor;  // i64, [groups]
  bool counts;                // of each group, otherwise cumulative ends

  // The number of groups that cut `total`. Refuses what is known to be wrong.
  std::int64_t require(std::int64_t total) const;
  // [groups + 1]: where each group begins, and the end of all. Refuses a tensor's wrong values.
  const std::int64_t* bounds(std::int64_t total, core::arena& scratch) const;
};

// Refuses a number of weights other than that of groups.
void require_a_matrix_each(std::int64_t groups, std::int64_t weights, const char* field);

template <class Args>
group_list groups_of(const Args& a) {
  return {a.group_list, a.group_list_tensor, a.group_list_kind == VELO_GROUP_LIST_KIND_COUNTS};
}

}  // namespace velo::ops
