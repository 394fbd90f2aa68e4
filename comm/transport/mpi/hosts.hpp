// Hierarchical collectives for ranks on several hosts: large data goes through shared memory inside
// a host, and crosses between hosts once, through one leader of each host.
//
// Small data goes from rank to rank, and so does data that differs for each rank (all_to_all) and
// would gain nothing; the bits are the same (host_order.hpp). Invariant: all ranks make the same
// choice whether an operation is hierarchical, and it begins after all ranks have agreed on its
// terms. A rank that waits inside a host also checks the link for faults. Only the link has a
// timeout, so a rank of this host that waits for another host is not blamed.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/transport/mpi/host_order.hpp"
#include "comm/transport/mpi/round.hpp"
#include "comm/transport/shared/rank_context.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

class mpi_hosts final : progress_hook {
 public:
  // Connects to the ranks of this host in shared memory, if the group is hierarchical. Throws as
  // make_shm does.
  mpi_hosts(mpi_link& link, std::size_t buffer);  // bytes, of each rank

  // Returns false if the operation goes from rank to rank; its openings are then still to be
  // exchanged.
  bool carry_out(mpi_round& r);
  void explain(const operation& what, explanation& to) const;
  const host_order& order() const noexcept { return order_; }
  void fail(const fault& why) noexcept;

 private:
  class scattering;
  const std::vector<host_order::host>& hosts() const noexcept { return order_.hosts(); }
  const std::vector<int>& local_ranks() const noexcept { return hosts()[own_host_].ranks; }
  bool serves(const operation& what) const;
  std::vector<int> leaders(int root) const;
  int local_rank(int rank) const;  // in this host; 0 for a rank of another
  void reduce_whole(mpi_round& r);
  void reduce_blocks(mpi_round& r);
  void spread(mpi_round& r);
  void gather_blocks(mpi_round& r);
  void share(mpi_round& r, int from);
  void run_inside(const mpi_round& r, const operation& what);
  void poll(std::int64_t waited_ns, const rank_set& awaited) override;
  rank_set ranks_of(const rank_set& places) const;  // converts local ranks to ranks of the group
  void end_all();

  mpi_link& link_;
  const host_order order_;
  const std::size_t own_host_;               // index of this rank's host
  std::unique_ptr<transport> inside_;        // nullptr: this rank is alone on its host
  fault doing_;                              // the operation that runs inside
  std::optional<mpi_link::sent_wait> note_;  // of the wait inside, while that operation runs
  std::int64_t waited_ = 0;                  // its length
};

}  // namespace velo::comm
