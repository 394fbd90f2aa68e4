// The waits of all ranks of an outermost group, in any of its parts, for ranks that reach their
// deadline.
//
// A rank that is awaited in one group may itself wait in another. So a rank that sleeps notes in
// which group and call it waits, and for which ranks. A rank whose deadline has passed follows
// these notes from the ranks that it awaits to ranks that do not wait, and names those, in the
// group where they were missed. A note holds while its rank renews it: that of a stopped rank
// lapses. A rank that has met a fault leaves a note that holds, since it comes to no other call
// until it makes another group. A rank has notes for three waits at once; others are not noted.
// Each transport keeps the notes in its own way: in shared memory (shared/area_notes.hpp), or as
// messages (mpi/sent_notes.hpp).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "comm/operation/outermost_ranks.hpp"

namespace velo::comm {

// The notes of an outermost group as one of its ranks writes and reads them. Ranks are numbered as
// in that group. Thread-safe, but a note is written by one thread at a time.
class wait_notes {
 public:
  static constexpr int count = 4;  // of a rank: one of a fault and three of waits at once
  static constexpr int fault_note = 0;

  wait_notes(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  virtual ~wait_notes() = default;
  wait_notes(const wait_notes&) = delete;
  wait_notes& operator=(const wait_notes&) = delete;

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }

  // Writes or renews a note of this rank. what: the call and the part, with the awaited ranks as
  // its culprits. The note of a fault needs no renewal.
  virtual void write(int note, const fault& what) noexcept = 0;
  virtual void erase(int note) noexcept = 0;
  // Returns the ranks that another rank awaits, and copies the call and the part to `what`. Returns
  // none if there is no note or it has lapsed. timeout_ns: of the call that asks.
  virtual rank_set read(int of, int note, std::int64_t timeout_ns, fault& what) const noexcept = 0;
  // Whether another rank has waited for so long that this one should note even a short wait.
  virtual bool others_are_late() const noexcept { return false; }

 private:
  friend class noted_wait;
  const int rank_, ranks_;
  std::atomic<std::uint32_t> used_{1u << fault_note};  // a bit for each note in use
};

// The board as one rank of one group sees it. By default there is no board: no wait is noted, and
// the awaited ranks are named.
class wait_board {
 public:
  wait_board() = default;
  explicit wait_board(std::shared_ptr<wait_notes> notes) noexcept;  // of the outermost group
  wait_board part(const std::vector<int>& ranks) const;  // ranks: of the part, in this group
  void set_label(const std::string& label) noexcept;     // of the group

  // The rank has met a fault of this group, which is kept until forget().
  void meet(const fault& why) const noexcept;
  void forget() const noexcept;

  // why.culprits: the ranks that this rank awaits. If these wait themselves, they are replaced by
  // the ranks at the ends of the waits, and why names the call and the part where these were
  // missed.
  void follow_waits(fault& why) const noexcept;
  rank_set culprits_here(const fault& why) const noexcept;  // numbered as in this group
  bool others_are_late() const noexcept;

 private:
  friend class noted_wait;
  void write(int note, const fault& what) const noexcept;

  std::shared_ptr<wait_notes> notes_;  // of this rank, in all groups; nullptr: no board
  outermost_ranks ranks_;
  char label_[sizeof fault::part] = "";
};

// The note of one wait of this rank at a time. It uses one of the rank's notes from renew() until
// clear().
class noted_wait {
 public:
  explicit noted_wait(const wait_board& on) noexcept : on_(on) {}
  ~noted_wait();  // a note that was not cleared lapses: the group has ended
  noted_wait(const noted_wait&) = delete;

  // Before each sleep. what: the call, with the awaited ranks as its culprits.
  void renew(const fault& what) noexcept;
  void clear() noexcept;  // another wait may be noted after it

 private:
  void free_slot() noexcept;

  const wait_board& on_;
  int note_ = 0;  // none yet
};

}  // namespace velo::comm
