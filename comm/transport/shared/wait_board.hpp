// The waits of all ranks of an outermost group, in any of its parts, for ranks that reach their
// deadline.
//
// A rank that is awaited in one group may itself wait in another. So a rank that sleeps writes a
// note into the outermost group's area: in which group and call, for which ranks. A rank whose
// deadline has passed follows these notes from the ranks that it awaits to ranks that do not wait,
// and names those, in the group where they were missed. A note holds while its rank renews it, at
// each wake-up from a sleep of at most 50 ms: that of a stopped rank lapses. A rank that has met a
// fault leaves a note that holds, since it comes to no other call until it makes another group. A
// rank has notes for three waits at once, and a note room for four ranks; others are not noted.
// Cost: some words before a system call; nothing for waits that do not sleep.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/operation/outermost_ranks.hpp"

namespace velo::comm {

class shared_area;

// The board as one rank of one group sees it. By default there is no board, as between hosts: no
// wait is noted, and the awaited ranks are named.
class wait_board {
 public:
  wait_board() = default;
  // Makes the board of the outermost group. memory: keeps the area mapped.
  wait_board(const shared_area& area, std::shared_ptr<void> memory, int rank);
  wait_board part(const std::vector<int>& ranks) const;  // ranks: of the part, in this group
  void set_label(const std::string& label) noexcept;     // of the part

  // The rank has met a fault of this group, which is kept until forget().
  void meet(const fault& why) const noexcept;
  void forget() const noexcept;

  // why.culprits: the ranks that this rank awaits. If these wait themselves, they are replaced by
  // the ranks at the ends of the waits, and why names the call and the part where these were
  // missed.
  void follow_waits(fault& why) const noexcept;
  rank_set culprits_here(const fault& why) const noexcept;  // numbered as in this group

 private:
  friend class noted_wait;
  struct place;
  void write(int note, const fault& what, std::uint64_t renewed) const noexcept;

  std::shared_ptr<place> place_;  // of this rank, in all groups; nullptr: no board
  outermost_ranks ranks_;
  char label_[sizeof fault::part] = "";
};

// The note of one wait of this rank.
class noted_wait {
 public:
  explicit noted_wait(const wait_board& on) noexcept : on_(on) {}
  ~noted_wait();  // a note that was not cleared lapses: the group has ended
  noted_wait(const noted_wait&) = delete;

  // Before each sleep. what: the call, with the awaited ranks as its culprits.
  void renew(const fault& what) noexcept;
  void clear() noexcept;

 private:
  const wait_board& on_;
  int note_ = 0;  // none yet
};

}  // namespace velo::comm
