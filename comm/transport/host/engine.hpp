// A host's functions, the thread that calls them, and the memory that they access.
//
// The group's thread hands each piece of work to the engine's thread and waits for it, at most for
// the timeout. A function that hangs keeps only its thread and the engine, which both sides own, so
// no function ever accesses a caller's memory. Invariant: while work is running, only the engine's
// thread uses the functions, the staged data and the sizes; otherwise only the group's thread does.
// A piece of work costs two wake-ups.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/operation/fault.hpp"
#include "comm/transport/host/host.hpp"
#include "core/stream/threads.hpp"

namespace velo::comm {

// The failure of a host's function, as it reported it.
struct host_failure {
  char text[128] = "";
  rank_set late;  // the ranks that it reports as late

  fault as_fault(int rank) const;  // rank: whose function failed
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

  // The memory for sending and for receiving: `room` bytes each.
  void stage(std::size_t bytes);  // throws bad_alloc
  char* in() const noexcept { return memory_.get(); }
  char* out() const noexcept { return memory_.get() + room_; }
  std::int64_t room() const noexcept { return static_cast<std::int64_t>(room_); }

  // The bytes of each rank that fit in one step of share(), of spread(), or of trade() for one
  // block.
  std::int64_t share_room() const noexcept { return room() / size; }
  std::int64_t spread_room() const noexcept { return spreads() ? room() : share_room(); }
  std::int64_t piece_room() const noexcept { return trades() ? share_room() : share_room() / size; }

  // Calls give(peer) and take(peer) for every peer. Pairs of ranks exchange in an order that all
  // ranks know, and the lower rank of a pair sends first, so that ranks never wait in a cycle.
  template <class Give, class Take>
  void by_pairs(Give&& give, Take&& take) const;

  // Pieces of work; they throw host_failure.
  void share(std::int64_t bytes);  // gathers the bytes of every rank for all, in rank order
  void spread(int root, std::int64_t bytes);  // from the root's in() to every out()
  void trade(std::int64_t most);  // blocks of the sizes in gives and takes; most: the largest
  void send(int to, std::int64_t bytes);
  void receive(int from, std::int64_t bytes);
  void all_reduce(const terms& what, std::int64_t count);  // sets declined
  void make_part(const std::vector<std::int32_t>& ranks, host_table& made);
  std::vector<std::int64_t> gives, takes;  // bytes of the block for, and from, each rank
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
  std::int64_t until_ns_ = 0;       // deadline of the running work
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

// The group's side of the engine's thread.
class host_caller {
 public:
  explicit host_caller(std::shared_ptr<host_engine> engine);  // throws VELO_ERR_MEMORY
  ~host_caller();  // detaches a thread whose function does not return
  host_caller(const host_caller&) = delete;
  host_caller& operator=(const host_caller&) = delete;

  using work = std::function<void(host_engine&)>;
  // Waits for the work. Throws host_failure, also on a timeout and after `end`.
  void run(work what);
  // Follows the end of the group, when no call waits any more: runs `last` unless work is running,
  // then calls the host's abort.
  void end(work last, const char* why) noexcept;

 private:
  struct state;
  static void* serve(void* kept);

  const std::shared_ptr<state> state_;
  core::native_thread thread_;
};

}  // namespace velo::comm
