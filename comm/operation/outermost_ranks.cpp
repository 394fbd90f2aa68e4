// Numbers from one group to another, rank by rank.
#include "comm/operation/outermost_ranks.hpp"

#include "core/index.hpp"

namespace velo::comm {

outermost_ranks outermost_ranks::part(const std::vector<int>& ranks) const {
  outermost_ranks made;
  made.is_part_ = true;
  for (const int rank : ranks) made.ranks_.push_back(is_part_ ? ranks_[core::at(rank)] : rank);
  return made;
}

rank_set outermost_ranks::outermost(const rank_set& here) const noexcept {
  if (!is_part_) return here;
  rank_set all;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (here.has(static_cast<int>(rank))) all.add(ranks_[rank]);
  return all;
}

rank_set outermost_ranks::here(const rank_set& outermost) const noexcept {
  if (!is_part_) return outermost;
  rank_set all;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (outermost.has(ranks_[rank])) all.add(static_cast<int>(rank));
  return all;
}

}  // namespace velo::comm
