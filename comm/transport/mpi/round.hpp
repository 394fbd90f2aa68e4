// A round over MPI (comm/transport/round.hpp).
//
// It begins with an opening from each rank to every other: its terms, a number for the receiver,
// and a small payload. When all openings have arrived and their terms agree, larger data goes
// through slots in steps; the messages of one step are under way while the data of the previous
// step is processed. Both sides know how many bytes a step carries between them, and send no empty
// message. Cost: a message in each direction, and the time of the data.
#pragma once

#include "comm/transport/mpi/host_order.hpp"
#include "comm/transport/mpi/link.hpp"
#include "core/context.hpp"
#include "core/index.hpp"

namespace velo::comm {

class mpi_round {
 public:
  // Bytes of data that an opening has room for.
  static constexpr std::int64_t room = 1920;
  bool fits(std::int64_t bytes) const noexcept { return !inner_ && bytes <= room; }

  mpi_round(mpi_link& by, const host_order& order, const operation& what, core::execution& state,
            std::uint64_t sequence);
  // A round inside another round whose openings have been exchanged: between some of its ranks, in
  // the order of `members`.
  mpi_round(mpi_round& outer, const operation& what, const std::vector<int>& members);
  ~mpi_round();
  mpi_round(const mpi_round&) = delete;
  mpi_round& operator=(const mpi_round&) = delete;

  const operation& what;
  core::execution& state;
  const int rank, size;

  void synchronize();
  void move_blocks();
  void reduce_whole();
  void reduce_blocks();
  // The same for data that fits in no opening, after exchange_openings().
  void move_large();
  void spread_large();  // all of the root's tensor, to every rank
  void reduce_large();

  // Sets the number in the opening to a rank, and its payload: at most `room` bytes.
  void announce(int to, std::int64_t number, const void* payload = nullptr, std::int64_t bytes = 0);
  void exchange_openings();  // throws PEER
  std::int64_t announced_by(int peer) const noexcept;
  const char* payload(int of) const noexcept;

  // to() is the slot for a rank during the write of a step; give() sends `bytes` that were staged
  // there or in another rank's slot, and expect() receives that many. from() is the data that
  // arrived, during the read.
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
  // Combines sources(), one from each rank, in the order of the group (host_order.hpp). Throws PEER
  // if the caller's function has ended the group.
  void combine(void* out, std::int64_t n);
  // Ends the group because a rank announced another number of elements than this rank expects.
  [[noreturn]] void disagree(int with, std::int64_t wanted, std::int64_t got);

 private:
  friend class mpi_hosts;
  int rank_of(int peer) const noexcept { return inner_ ? members_[core::at(peer)] : peer; }
  void compare();
  [[noreturn]] void end(const fault& why);

  mpi_link& link_;
  const host_order* const order_;  // nullptr: the ranks' order
  const bool inner_ = false;
  const std::vector<int> members_;
  fault doing_;
  int turn_ = 0;
  mpi_link::batch openings_, under_way_[2];
  std::vector<const void*> sources_;
};

}  // namespace velo::comm
