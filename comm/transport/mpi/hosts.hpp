// Ranks of several hosts: what is large goes through shared memory inside a host, and between hosts
// once, by way of one rank of each.
//
// What is small, and what gains nothing (all_to_all, which sends every byte where it is wanted as
// it is), goes from rank to rank, with the same bits (host_order.hpp). Invariant: whether an
// operation goes by way of hosts is the same on all ranks; when it begins, all ranks are in it and
// agree. A rank that waits inside a host also looks for faults on the link, which alone keeps the
// deadline: a rank here that waits for another host is not to blame.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport/mpi/host_order.hpp"
#include "comm/transport/mpi/round.hpp"
#include "comm/transport/shared/rank_context.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

class mpi_hosts final : progress_hook {
 public:
  // Meets the ranks of this host in shared memory, where that is of any use. Throws as make_shm
  // does.
  mpi_hosts(mpi_link& link, std::size_t buffer);  // bytes, of each rank

  // False: the operation goes from rank to rank. The ranks have not met yet.
  bool carry_out(mpi_round& r);
  void explain(const operation& what, explanation& to) const;
  const host_order& order() const noexcept { return order_; }
  void fail(const fault& why) noexcept;

 private:
  class scattering;
  const std::vector<host_order::host>& hosts() const noexcept { return order_.hosts(); }
  const std::vector<int>& own() const noexcept { return hosts()[own_].ranks; }
  bool serves(const operation& what) const;
  std::vector<int> leaders(int root) const;
  int here(int rank) const;  // its number in this host; 0 where it is of another
  void reduce_whole(mpi_round& r);
  void reduce_blocks(mpi_round& r);
  void spread(mpi_round& r);
  void gather_blocks(mpi_round& r);
  void share(mpi_round& r, int from);
  void run_inside(const mpi_round& r, const operation& what);
  void poll(std::int64_t waited_ns, const rank_set& awaited) override;
  void end_wait() noexcept;
  rank_set ranks_of(const rank_set& places) const;  // of this host, as the group numbers them
  void end_all();

  mpi_link& link_;
  const host_order order_;
  const std::size_t own_;               // this rank's host
  std::unique_ptr<transport> inside_;   // none: a host of one rank
  fault doing_;                         // inside
  std::int64_t waited_ = 0, told_ = 0;  // there: how long, and when others were told
};

}  // namespace velo::comm
