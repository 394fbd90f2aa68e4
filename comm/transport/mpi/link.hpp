// The link of one group over MPI: it sends from and receives into memory of its own.
//
// MPI never reads or writes the caller's memory. An operation may fail while messages are under
// way, because a rank is gone; the progress engine then keeps their requests and memory. Messages
// of one flow between two ranks arrive in the order in which they were sent. No rank waits longer
// than its timeout for a rank that sends nothing. A rank that has waited for half of its timeout
// notes for whom it waits, so that ranks that wait for it, in this group or another, do not blame
// it. Only the group's thread sends and waits; a fault may come from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/transport/mpi/progress.hpp"
#include "comm/transport/shared/rank_context.hpp"
#include "comm/transport/transport.hpp"
#include "comm/transport/wait_board.hpp"
#include "core/index.hpp"

namespace velo::comm {

inline constexpr std::int64_t notice_ns = 5000000;  // time within which a notice reaches all ranks

// Kinds of messages. Only messages of one kind keep their order.
enum class flow : int { opening, data, message, part };

class mpi_link final : public notice_reader {
 public:
  struct setting {
    std::shared_ptr<mpi_progress> progress;
    std::int64_t timeout_ns;
    std::size_t buffer;        // bytes; rank 0's value counts
    std::vector<int> members;  // ranks of the communicator; empty: all
    std::uint64_t number = 0;  // of a part
    std::string place{};       // of a part: the name of this rank's host
  };
  // Connects to the other ranks. Throws PEER, MEMORY, UNSUPPORTED.
  explicit mpi_link(setting set);
  ~mpi_link() override;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  std::int64_t timeout_ns() const noexcept { return timeout_ns_; }

  // The setting for a subgroup. All its ranks call this and agree on a number. Throws PEER if some
  // ranks do not call it, which does not end this group.
  setting part(const subgroup_terms& of);

  // A random number, and the name of the rank's host, equal for ranks that share memory.
  struct rank_host {
    std::string host;
    std::uint64_t token;
  };
  const std::vector<rank_host>& ranks() const noexcept { return ranks_; }

  // The memory for messages to and from each rank: an opening, two slots for data, used in turn,
  // and two for point-to-point messages in each direction.
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

  // Requests under way that are awaited together.
  class batch {
   public:
    void opens() noexcept { opens_ = true; }  // every rank needs them to go on

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

  // Repeats move() until it returns `all`, and checks for faults meanwhile. awaited_now(): returns
  // the awaited ranks.
  enum class motion { none, some, all };
  struct awaited {
    std::vector<int> comes, goes;  // ranks to receive from, and to send to
    bool begins = false;  // each message to receive was sent before its rank left, or never will be
    rank_set ranks() const;  // the ranks to blame: those to receive from, else those to send to
  };
  template <class Move, class AwaitedNow>
  void wait(const fault& doing, Move&& move, AwaitedNow&& awaited_now);

  // The note of one wait, and when it was first and last sent; 0: not yet.
  class sent_wait {
   public:
    explicit sent_wait(const mpi_link& link) noexcept : note_(link.waits_) {}
    void end() noexcept;  // before another wait

   private:
    friend class mpi_link;
    noted_wait note_;
    std::int64_t first_ns_ = 0, last_ns_ = 0;
  };
  // Checks for faults on behalf of a wait outside the link for some of its ranks. Throws PEER if
  // the group has ended, or ends now because of the wait. The caller calls note.end() after it.
  void check_faults(const fault& doing, const rank_set& waits_for, std::int64_t waited,
                    sent_wait& note);
  wait_board make_wait_board() const;
  void note_waits_on(const wait_board& on) { waits_ = on; }  // before the first call

  void send(batch& with, flow on, int to, const char* from, std::int64_t bytes);
  void receive(batch& with, flow on, int from, char* to, std::int64_t bytes);
  // doing: the operation, to describe a fault that is found meanwhile. Throws PEER.
  void finish(batch& all, const fault& doing);
  // Cancels a request after a failure, or leaves it to the progress engine.
  void abandon(batch& all) noexcept;
  void abandon(mpi_request& one) noexcept;

  void end(const fault& why) noexcept;  // on all ranks
  bool failed(fault& why) const noexcept;
  void raise_if_failed() const;
  bool has_left(int peer) const noexcept {
    return left_[core::at(peer)].load(std::memory_order_acquire);
  }
  void read(const notice& one) noexcept override;

 private:
  struct hello;
  void meet(const setting& set, bool whole);
  void map(std::size_t buffer);
  void note(const fault& why) noexcept;
  void raise_if_unconnected() const;
  motion advance(batch& all, const fault& doing);
  std::uint64_t departures() const noexcept { return departures_.load(std::memory_order_acquire); }
  struct wait_state {
    awaited all;
    const fault& doing;
    std::int64_t waited;
    std::uint64_t departures_before;
  };
  void check_faults(const wait_state& now, sent_wait& note);
  void note_wait(const wait_state& now, sent_wait& note) noexcept;
  void raise_if_over(const wait_state& now, bool is_late);
  void pause(std::int64_t waited) const noexcept;
  [[noreturn]] void end_as_broken(int peer, const fault& doing, const char* why);
  [[noreturn]] void end_and_raise(const fault& why);
  char* place(int index) const noexcept {
    return memory_.get() + static_cast<std::ptrdiff_t>(index) * opening_bytes;
  }
  char* slot(int set, int peer) const noexcept {
    return place(2 * size_) + (static_cast<std::size_t>(set) * size_ + peer) * slot_;
  }

  const std::shared_ptr<mpi_progress> progress_;
  const std::vector<int> members_;  // ranks of the communicator
  const int rank_, size_;
  const std::int64_t timeout_ns_;
  const std::int64_t spin_ns_;
  std::vector<rank_host> ranks_;
  std::uint64_t number_ = 0;
  bool is_connected_ = false;
  std::unique_ptr<std::atomic<bool>[]> left_;
  std::atomic<std::uint64_t> departures_{0};  // counts ranks that left, before left_ has them
  std::size_t slot_ = 0;
  std::shared_ptr<char> memory_;
  wait_board waits_;
  mutable std::mutex lock_;  // guards fault_
  fault fault_;
  std::atomic<bool> failed_{false};
};

template <class Move, class AwaitedNow>
void mpi_link::wait(const fault& doing, Move&& move, AwaitedNow&& awaited_now) {
  for (int i = 0; i < 256; ++i)  // some ten microseconds
    if (move() == motion::all) return;
  std::int64_t since = now_ns();
  sent_wait note(*this);
  while (true) {
    progress_->poll();
    const std::uint64_t before = departures();
    const motion moved = move();
    if (moved != motion::none) note.end();
    if (moved == motion::all) return;
    const std::int64_t now = now_ns();
    if (moved == motion::some) since = now;
    is_connected_ ? raise_if_failed() : raise_if_unconnected();
    if (now - since >= yield_ns) check_faults({awaited_now(), doing, now - since, before}, note);
    pause(now - since);
  }
}

}  // namespace velo::comm
