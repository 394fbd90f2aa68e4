// Ranks of several hosts: what is large goes through shared memory inside a host, and between hosts
// once, by way of one rank of each.
//
// Elements are combined in rank order inside a host, and then in the order of the hosts: those of their
// lowest ranks. What is small, and what gains nothing (all_to_all, which sends every byte where it is
// wanted as it is), goes from rank to rank. Invariant: whether an operation goes by way of hosts is the
// same on all ranks; when it begins, all ranks are in it and agree.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport/mpi/round.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

class mpi_hosts {
 public:
  // Meets the ranks of this host in shared memory, where that is of any use. Throws as make_shm does.
  mpi_hosts(mpi_link& link, std::size_t buffer);  // bytes, of each rank

  // False: the operation goes from rank to rank. The ranks have not met yet.
  bool carry_out(mpi_round& r);
  void fail(const fault& why) noexcept;

 private:
  struct host {
    std::vector<int> ranks;
    bool is_block = true;  // ranks one behind the other
  };
  bool serves(const operation& what) const;
  std::vector<int> speakers(int root) const;
  int here(int rank) const;  // its number in this host; 0 where it is of another
  void combine(mpi_round& r, int for_rank);
  void broadcast(mpi_round& r);
  void all_gather(mpi_round& r);
  void share(mpi_round& r, int from);
  void run_inside(const operation& what, core::execution& state);
  void end_all();

  mpi_link& link_;
  std::vector<host> hosts_;
  std::size_t own_ = 0;
  bool pays_ = false;                  // several hosts, and several ranks on one
  std::unique_ptr<transport> inside_;  // none: a host of one rank
};

}  // namespace velo::comm
