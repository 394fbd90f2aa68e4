// The ways of tokens over hosts: each goes once to one rank of every host that has an expert of it,
// the passer, which passes it to the ranks of these experts. On its own host a token's rank passes
// it.
//
// The passer of a rank's tokens on another host is the rank of its place there, modulo the ranks of
// that host. Ranks exchange how many tokens of each rank they need, and which: then every rank
// knows what arrives, and what it passes on. Invariant: tokens lie by their rank, then in order, at
// the passer and at the ranks of experts alike. Cost: 8 bytes for each two ranks, and 4 bytes for
// each rank that a token goes to.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/moe/row_routes.hpp"

namespace velo::sched {

class host_routes {
 public:
  // hosts: that of each rank. of: complete, with the choices of its received rows.
  host_routes(const row_routes& of, std::vector<int> hosts);

  // Ranks exchange the counts [ranks] of each; then parts of the lists of tokens.
  const std::vector<std::int64_t>& own_counts() const { return own_; }
  std::int64_t* all_counts() { return all_.data(); }
  struct lists {
    std::vector<std::int32_t> tokens;
    comm::blocks parts;  // of each rank
    std::int64_t count() const { return static_cast<std::int64_t>(tokens.size()); }
  };
  lists needed() const;  // with the counts of all ranks, and the two below
  lists room_for_wanted() const;
  void complete(const lists& wanted);

  // After complete(): tokens of this rank that leave its host, by passer; tokens that arrive here
  // to be passed on; tokens that this rank passes on, those of its own as -1 - token, others by
  // their place among those that arrived; tokens that it gets, from their passers.
  const lists& leaving() const { return leaving_; }
  const comm::blocks& arriving() const { return arriving_; }
  const lists& passed() const { return passed_; }
  const comm::blocks& received() const { return received_; }
  // For each received row of row_routes the place of its token among those that this rank gets.
  const std::vector<std::int32_t>& places() const { return places_; }

  static std::int64_t count_of(const comm::blocks& all) {
    return all.back().begin + all.back().count;
  }

 private:
  int host(int rank) const { return hosts_[core::at(rank)]; }
  int passer(int of, int on_host) const;
  std::int64_t count(int to, int of) const { return all_[core::at(to * ranks() + of)]; }
  int ranks() const { return static_cast<int>(hosts_.size()); }
  void set_leaving(const row_routes& of);
  void set_places();

  const std::vector<int> hosts_;
  const int rank_;
  std::vector<std::vector<int>> ranks_of_;              // by host
  std::vector<std::vector<std::int32_t>> needed_;       // by rank: its tokens with experts here
  std::vector<std::int32_t> sources_, places_of_rank_;  // of received rows
  std::vector<std::int64_t> own_, all_;
  lists leaving_, passed_;
  comm::blocks arriving_, received_;
  std::vector<std::int32_t> places_;
};

}  // namespace velo::sched
