// The messages of one group: sent from, and received into, memory of its own.
//
// What MPI reads or writes is never the caller's: an operation may end while messages are under
// way, because a rank is gone, and their bytes then stay behind in the care of the hub. Messages of
// a kind between two ranks arrive in the order in which they were sent; nobody waits beyond the
// deadline for a rank from which nothing comes. Who has waited for half of it says for whom: so who
// is awaited, but waits itself, is not named for it. The group's thread alone sends and waits; a
// fault may come from any.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/transport/mpi/hub.hpp"
#include "comm/transport/shared/rank_context.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

inline constexpr std::int64_t word_ns = 5000000;  // until what a rank tells has come to all

// Kinds of messages, each in an order of its own.
enum class flow : int { opening, data, message, part };

class mpi_link final : public notice_reader {
 public:
  struct setting {
    std::shared_ptr<mpi_hub> hub;
    std::int64_t timeout_ns;
    std::size_t buffer;        // bytes, rank 0's hold
    std::vector<int> members;  // ranks of the communicator; empty: all
    std::uint64_t number = 0;  // of a part
    std::string place{};       // of a part: this rank's, as of whereabouts
  };
  // Meets the other ranks. Throws PEER, MEMORY, UNSUPPORTED.
  explicit mpi_link(setting set);
  ~mpi_link() override;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  std::int64_t timeout_ns() const noexcept { return timeout_ns_; }

  // What a part of the group is made of: its ranks, which all call this, agree on a number. Throws
  // PEER when they do not come, which ends nothing.
  setting part(const subgroup_terms& of);

  // Of all ranks: a name of the host, the same for those that share its memory, and a number by
  // chance.
  struct whereabouts {
    std::string host;
    std::uint64_t token;
  };
  const std::vector<whereabouts>& ranks() const noexcept { return ranks_; }

  // Places for what is sent and received: of an opening; of data and of messages (way 2), two for
  // each rank and direction, used in turn.
  static constexpr int opening_bytes = 2048;
  std::int64_t slot_bytes() const noexcept { return static_cast<std::int64_t>(slot_); }
  char* opening_to(int peer) const noexcept { return place(peer); }
  char* opening_of(int peer) const noexcept { return place(size_ + peer); }
  char* slot_to(int peer, int turn, int way = 0) const noexcept {
    return slot(2 * turn + 2 * way, peer);
  }
  char* slot_of(int peer, int turn, int way = 0) const noexcept {
    return slot(2 * turn + 2 * way + 1, peer);
  }

  // What is under way and waited for together.
  class batch {
   public:
    void opens() noexcept { opens_ = true; }  // without these nobody goes on

   private:
    friend class mpi_link;
    struct message {
      mpi_request request;
      int peer;
      bool comes;
    };
    std::vector<message> all_;
    bool opens_ = false;
  };
  void begin_send(mpi_request& one, flow on, int to, const char* from, std::int64_t bytes);
  void begin_receive(mpi_request& one, flow on, int from, char* to, std::int64_t bytes);
  bool is_done(mpi_request& one, int peer, const fault& doing);

  // Until move() has nothing left to do; it says whether it did anything. tell(): what is awaited.
  enum class motion { none, some, all };
  struct awaited {
    std::vector<int> comes, goes;  // from and to whom
    bool begins = false;           // what comes was sent before a rank left, or never
    rank_set ranks() const;        // that are waited for
  };
  template <class Move, class Tell>
  void wait(const fault& doing, Move&& move, Tell&& tell);

  // For who waits for some of the ranks elsewhere: throws PEER when the group has ended, or does
  // now for that wait. told: when others were told of it, 0: not yet; else they are to be told that
  // it is over.
  void look_around(const fault& doing, const rank_set& waits_for, std::int64_t waited,
                   std::int64_t& told);
  void tell_goes_on() noexcept;

  void send(batch& with, flow on, int to, const char* from, std::int64_t bytes);
  void receive(batch& with, flow on, int from, char* to, std::int64_t bytes);
  // `doing`: what a fault that is found in the meantime says of the operation. Throws PEER.
  void finish(batch& all, const fault& doing);
  // The operation has failed: takes back what is under way, or leaves it to the hub.
  void abandon(batch& all) noexcept;
  void abandon(mpi_request& one) noexcept;

  void end(const fault& why) noexcept;  // for all ranks
  bool failed(fault& why) const noexcept;
  void raise_if_failed() const;
  bool has_left(int peer) const noexcept {
    return left_[static_cast<std::size_t>(peer)].load(std::memory_order_acquire);
  }
  void read(const notice& one) noexcept override;

 private:
  struct hello;
  void meet(const setting& set, bool whole);
  void map(std::size_t buffer);
  void note(const fault& why) noexcept;
  void raise_if_unmade() const;
  motion advance(batch& all, const fault& doing);
  std::uint64_t departures() const noexcept { return departures_.load(std::memory_order_acquire); }
  struct wait_state {
    awaited all;
    const fault& doing;
    std::int64_t waited;
    std::uint64_t departures_before;
  };
  void look_around(const wait_state& now, std::int64_t& told);
  void raise_if_over(const wait_state& now, bool is_late);
  void pause(std::int64_t waited) const noexcept;
  void tell_waits(const awaited& all) noexcept;
  [[noreturn]] void end_broken(int peer, const fault& doing, const char* why);
  [[noreturn]] void end_and_raise(const fault& why);
  char* place(int index) const noexcept {
    return memory_.get() + static_cast<std::ptrdiff_t>(index) * opening_bytes;
  }
  char* slot(int set, int peer) const noexcept {
    return place(2 * size_) + (static_cast<std::size_t>(set) * size_ + peer) * slot_;
  }

  const std::shared_ptr<mpi_hub> hub_;
  const std::vector<int> members_;  // ranks of the communicator
  const int rank_, size_;
  const std::int64_t timeout_ns_;
  const std::int64_t spin_ns_;
  std::vector<whereabouts> ranks_;
  std::uint64_t number_ = 0;
  bool is_met_ = false;
  std::unique_ptr<std::atomic<bool>[]> left_;
  std::atomic<std::uint64_t> departures_{0};  // ranks that left, counted before left_ says so
  std::size_t slot_ = 0;
  std::shared_ptr<char> memory_;
  mutable std::mutex lock_;  // guards the next two
  fault fault_;
  std::vector<rank_set> waits_;  // of each rank: for whom, as it says
  std::atomic<bool> failed_{false};
};

template <class Move, class Tell>
void mpi_link::wait(const fault& doing, Move&& move, Tell&& tell) {
  for (int i = 0; i < 256; ++i)  // some ten microseconds
    if (move() == motion::all) return;
  std::int64_t since = now_ns();
  std::int64_t told = 0;
  while (true) {
    hub_->poll();
    const std::uint64_t before = departures();
    const motion moved = move();
    if (told != 0 && moved != motion::none) tell_goes_on();
    if (moved == motion::all) return;
    const std::int64_t now = now_ns();
    if (moved == motion::some) since = now, told = 0;
    is_met_ ? raise_if_failed() : raise_if_unmade();
    if (now - since >= yield_ns) look_around({tell(), doing, now - since, before}, told);
    pause(now - since);
  }
}

}  // namespace velo::comm
