// The order in which a group combines elements: inside each host by rank, then the hosts' results
// in the order of the hosts' lowest ranks.
//
// A reduction is split in two: inside a host, and between hosts. A host's result has the dtype of
// the accumulator, float32 for 16-bit elements, so that elements are rounded only at the end. The
// bits are the same whether one rank has all elements (`combine` here) or each host combines its
// own and sends the result (hosts.hpp). An average of integers is not split: its exact sum is wider
// than the elements and does not depend on the order. Cost: two reductions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/operation/operation.hpp"
#include "core/stream/execution.hpp"

namespace velo::comm {

class host_order {
 public:
  struct host {
    std::vector<int> ranks;  // in order
    bool is_block = true;    // consecutive
  };
  // names: the host name of each rank.
  explicit host_order(const std::vector<std::string>& names);

  const std::vector<host>& hosts() const noexcept { return hosts_; }
  std::size_t host_of(int rank) const noexcept;
  // Whether the order differs from the ranks' order: there are several hosts, one of them with
  // several ranks.
  bool matters() const noexcept { return hosts_.size() > 1 && hosts_.size() < names_; }

  // sources: one from each rank.
  void combine(const operation& what, const void* const* sources, void* out, std::int64_t n,
               core::execution& state) const;

 private:
  std::vector<host> hosts_;
  const std::size_t names_;
};

// is_split: whether a reduction is split in two. The part between hosts has no scale, and an
// average divides by the number of ranks.
bool is_split(const operation& what) noexcept;
struct two_reductions {
  operation inside, between;
};
two_reductions split(const operation& what, int ranks, const reduction_kernels& kernels);

}  // namespace velo::comm
