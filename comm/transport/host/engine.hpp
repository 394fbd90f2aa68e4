// A host's functions, the thread they are called on, and the memory they see.
//
// Whoever carries out an operation hands the thread a piece of work and waits for it, no longer
// than the deadline: a function that hangs keeps its thread and the engine, which belongs to both
// sides, and nobody else. So no function ever sees memory of a caller. Invariant: while work is
// under way its thread alone uses the functions, what is staged and the sizes; otherwise the
// group's thread alone does. Cost: two wake-ups for each piece of work.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/group/fault.hpp"
#include "comm/transport/host/host.hpp"
#include "core/stream/threads.hpp"

namespace velo::comm {

// What a function of the host said when it failed.
struct host_failure {
  char text[128] = "";
  rank_set late;  // for which it waited in vain, by its word

  fault as_fault(int rank) const;  // of the rank whose function failed
};

class host_engine {
 public:
  host_engine(std::shared_ptr<host_table> owner, int rank, int size, std::int64_t timeout_ns);
  host_engine(const host_engine&) = delete;
  host_engine& operator=(const host_engine&) = delete;

  const int rank, size;
  const std::shared_ptr<host_table> owned;
  const velo_host_collectives& table;
  const std::int64_t timeout_ns;

  // What goes out, and what comes: `room` bytes each.
  void stage(std::size_t bytes);  // throws bad_alloc
  char* in() const noexcept { return memory_.get(); }
  char* out() const noexcept { return memory_.get() + room_; }
  std::int64_t room() const noexcept { return static_cast<std::int64_t>(room_); }

  // Bytes that fit of each rank: shared by all, spread by one, or given by each to each.
  std::int64_t share_room() const noexcept { return room() / size; }
  std::int64_t spread_room() const noexcept { return spreads() ? room() : share_room(); }
  std::int64_t piece_room() const noexcept { return trades() ? share_room() : share_room() / size; }

  // give(peer) and take(peer) for all others. Every pair of ranks meets once, at the same point of
  // an order that all know, the lower one giving first: nobody waits for a rank that waits.
  template <class Give, class Take>
  void by_pairs(Give&& give, Take&& take) const;

  // Work, of what the host has; all throw host_failure.
  void share(std::int64_t bytes);             // of each rank, to all: in order in out()
  void spread(int root, std::int64_t bytes);  // from the root's in() to every out()
  void trade(std::int64_t most);  // gives, takes, one behind the other; most: the largest
  void send(int to, std::int64_t bytes);
  void receive(int from, std::int64_t bytes);
  void all_reduce(const terms& what, std::int64_t count);  // sets declined
  void make_part(const std::vector<std::int32_t>& ranks, host_table& made);
  std::vector<std::int64_t> gives, takes;  // bytes for each rank, and from each
  bool declined = false;

 private:
  friend class host_caller;
  bool trades() const noexcept { return table.all_to_all != nullptr || has_messages(); }
  bool spreads() const noexcept { return table.broadcast != nullptr; }
  bool has_messages() const noexcept { return table.send != nullptr; }
  template <class Function>
  bool answer(const char* name, std::int64_t wanted, bool may_decline, Function&& function);
  template <class Function>
  void call(const char* name, std::int64_t wanted, Function&& function);
  [[noreturn]] void fail_call(const char* name, const char* what, const char* why) const;

  std::size_t room_ = 0;
  std::unique_ptr<char[]> memory_;
  std::vector<std::uint8_t> late_;  // of each rank
  std::int64_t until_ns_ = 0;       // of the work under way
};

template <class Give, class Take>
void host_engine::by_pairs(Give&& give, Take&& take) const {
  for (int turn = 0; turn < size; ++turn) {
    const int peer = (turn - rank + size) % size;
    if (peer == rank) continue;
    if (rank < peer) give(peer);
    take(peer);
    if (rank > peer) give(peer);
  }
}

// The thread, from the side of the group.
class host_caller {
 public:
  explicit host_caller(std::shared_ptr<host_engine> engine);  // throws VELO_ERR_MEMORY
  ~host_caller();  // leaves a thread whose function does not return to itself
  host_caller(const host_caller&) = delete;
  host_caller& operator=(const host_caller&) = delete;

  using work = std::function<void(host_engine&)>;
  // Returns when it is done, throws host_failure, also when it is not by the deadline or after
  // `end`.
  void run(work what);
  // The group has ended: nobody waits any more. `last` is done where no work is under way; the
  // host's abort is called behind it, or at once.
  void end(work last, const char* why) noexcept;

 private:
  struct state;
  static void* serve(void* kept);

  const std::shared_ptr<state> state_;
  core::native_thread thread_;
};

}  // namespace velo::comm
