// The numbers of a group's ranks in the outermost group, of which all others are parts.
//
// A part of a part knows its ranks in the outermost group, too, so that faults and waits of any
// part can be named to the ranks of another. In the outermost group both numbers are the same.
// Cost: a visit of the part's ranks.
#pragma once

#include <vector>

#include "comm/operation/fault.hpp"

namespace velo::comm {

class outermost_ranks {
 public:
  outermost_ranks() = default;                                // of the outermost group
  outermost_ranks part(const std::vector<int>& ranks) const;  // ranks: of the part, in this group

  bool is_part() const noexcept { return is_part_; }
  rank_set outermost(const rank_set& here) const noexcept;
  rank_set here(const rank_set& outermost) const noexcept;  // those that this group has

 private:
  bool is_part_ = false;
  std::vector<int> ranks_;  // of a part: each rank's number in the outermost group
};

}  // namespace velo::comm
