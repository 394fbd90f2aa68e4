// The order in which a group combines elements: inside a host by rank, then the hosts' results, in
// the order of the hosts' lowest ranks.
//
// A reduction is two: of a host's ranks, and of hosts. Between them a result has the dtype in which
// elements are combined, float32 for the narrower ones, so that nothing is rounded but at the end:
// the bits are the same whether one rank has the elements of all (`combine` here) or each host
// combines its own and sends what came out (hosts.hpp). Averages of integers are of their exact
// sum, which is wider than what is sent and has no order: they are not split. Cost: that of two
// reductions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/group/operation.hpp"
#include "core/stream/execution.hpp"

namespace velo::comm {

class host_order {
 public:
  struct host {
    std::vector<int> ranks;  // from the lowest on
    bool is_block = true;    // one behind the other
  };
  // names: of each rank's host.
  explicit host_order(const std::vector<std::string>& names);

  const std::vector<host>& hosts() const noexcept { return hosts_; }
  std::size_t host_of(int rank) const noexcept;
  // Several hosts, and several ranks on one: otherwise the order is that of the ranks.
  bool matters() const noexcept { return hosts_.size() > 1 && hosts_.size() < names_; }

  // What stands at `sources`, one of each rank.
  void combine(const operation& what, const void* const* sources, void* out, std::int64_t n,
               core::execution& state) const;

 private:
  std::vector<host> hosts_;
  const std::size_t names_;
};

// A reduction of `ranks` as two; that of hosts has no scale, and averages over the ranks.
bool is_split(const operation& what) noexcept;
struct two_reductions {
  operation near, far;
};
two_reductions split(const operation& what, int ranks, const reduction_kernels& kernels);

}  // namespace velo::comm
