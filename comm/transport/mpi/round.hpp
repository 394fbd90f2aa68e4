// A round: one operation of a group over MPI, as one rank carries it out.
//
// It begins with an opening from each rank to each: its terms, a number meant for the reader, and
// what little of its data the reader gets. When all have come and their terms agree, what is larger
// goes through slots in steps, the next of which is under way while one is worked on. Both sides
// know what a step carries between them, and nothing is sent where that is nothing. Cost: the time
// of a message there and of one back, and of the data.
#pragma once

#include "comm/transport/mpi/host_order.hpp"
#include "comm/transport/mpi/link.hpp"
#include "core/context.hpp"

namespace velo::comm {

class mpi_round {
 public:
  // Bytes of data that an opening has room for.
  static constexpr std::int64_t room = 1920;
  bool fits(std::int64_t bytes) const noexcept { return !inner_ && bytes <= room; }

  mpi_round(mpi_link& by, const host_order& order, const operation& what, core::execution& state,
            std::uint64_t sequence);
  // Inside another, whose ranks have met: between some of them, in the order of `members`.
  mpi_round(mpi_round& outer, const operation& what, const std::vector<int>& members);
  ~mpi_round();
  mpi_round(const mpi_round&) = delete;
  mpi_round& operator=(const mpi_round&) = delete;

  const operation& what;
  core::execution& state;
  const int rank, size;

  // Before the ranks meet: what the opening to a rank says, and brings: at most `room`.
  void say(int to, std::int64_t number, const void* payload = nullptr, std::int64_t bytes = 0);
  void meet();  // throws PEER
  std::int64_t said(int by) const noexcept;
  const char* payload(int of) const noexcept;

  // In a step's write: where what goes to a rank is staged, and how much of it there is (or of what
  // was staged elsewhere for another); how much comes from a rank. In its read: where that is.
  char* to(int peer) const noexcept { return link_.slot_to(rank_of(peer), turn_); }
  void give(int peer, const char* staged, std::int64_t bytes);
  void expect(int peer, std::int64_t bytes);
  const char* from(int peer) const noexcept { return link_.slot_of(rank_of(peer), turn_); }
  std::int64_t slot_bytes() const noexcept { return link_.slot_bytes(); }

  template <class Write, class Read>
  void steps(std::int64_t count, Write&& write, Read&& read) {
    for (std::int64_t step = 0; step <= count; ++step) {
      if (step < count) {
        turn_ = static_cast<int>(step % 2);
        write(step);
      }
      if (step == 0) continue;
      turn_ = static_cast<int>((step - 1) % 2);
      link_.finish(under_way_[turn_], doing_);
      read(step - 1);
    }
  }

  const void** sources() noexcept { return sources_.data(); }
  // What stands at sources(), one of each rank, in the order of the group (host_order.hpp). Throws
  // PEER: the caller's function has ended the group.
  void combine(void* out, std::int64_t n);
  // Ends the group: a rank has other terms than it should, which the terms cannot show.
  [[noreturn]] void disagree(int with, std::int64_t wanted, std::int64_t got);

 private:
  friend class mpi_hosts;
  int rank_of(int peer) const noexcept {
    return inner_ ? members_[static_cast<std::size_t>(peer)] : peer;
  }
  void compare();
  [[noreturn]] void end(const fault& why);

  mpi_link& link_;
  const host_order* const order_;  // nullptr: that of the ranks
  const bool inner_ = false;
  const std::vector<int> members_;
  fault doing_;
  int turn_ = 0;
  mpi_link::batch openings_, under_way_[2];
  std::vector<const void*> sources_;
};

void carry_out(mpi_round& r);

// Parts of it: all_reduce (for_rank -1) and reduce, broadcast, and pieces of bytes from each to
// each, of what fits no opening.
void combine_large(mpi_round& r, int for_rank);
void broadcast_large(mpi_round& r);
struct piece {
  const char* from = nullptr;
  char* to = nullptr;
  std::int64_t count = 0;
};
// gives, takes: for each rank, of so many bytes an element.
void exchange_pieces(mpi_round& r, std::vector<piece> gives, std::vector<piece> takes,
                     std::int64_t element);

}  // namespace velo::comm
