// A round over a host's functions (comm/transport/round.hpp).
//
// It begins with an opening that all ranks share: the terms, the size of the largest block that a
// rank sends, the fault that has ended the group, if any, and a small payload. If all terms agree,
// larger data goes through the engine's memory in steps, the same number on all ranks. Cost: one
// call of the host's functions, and the time of its calls for the data.
#pragma once

#include <functional>
#include <vector>

#include "comm/transport/host/engine.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

// A rank's first message in a round.
struct host_opening {
  static constexpr std::int64_t room = 672;

  comm::terms terms;
  std::int64_t longest = 0;  // bytes of the longest block
  fault::how ended = fault::how::none;
  char cause[128] = "";
  rank_set culprits;  // of the fault that ended the group, as are the next three fields
  comm::terms other;
  std::uint64_t sequence = 0;
  std::int64_t timeout_ns = 0;
  char payload[room] = {};
};
static_assert(sizeof(host_opening) == 1024);

class host_round {
 public:
  host_round(host_caller& caller, host_engine& engine, const operation& what,
             std::uint64_t sequence)
      : caller_(caller),
        engine_(engine),
        what_(what),
        pattern_(what.pattern(engine.rank, engine.size)),
        sequence_(sequence),
        size_(engine.size) {}

  void run();  // throws host_failure, or the fault of the group
  bool opened() const noexcept { return opened_; }  // all ranks have shared their openings
  static void explain(const host_engine& by, const operation& what, explanation& to);

  // Runs on the engine's thread: sends this rank's opening to all ranks. opening_from() reads a
  // received one.
  static void share_opening(host_engine& with, const host_opening& mine);
  static host_opening opening_from(const host_engine& by, int rank);

  void synchronize();
  void move_blocks();
  void reduce_whole();
  void reduce_blocks();

 private:
  bool fits(std::int64_t bytes) const noexcept { return bytes <= host_opening::room; }
  char* received(int rank, std::int64_t bytes) const { return engine_.out() + rank * bytes; }
  void open(std::int64_t longest, const void* payload, std::int64_t bytes);
  void compare() const;
  void agree(bool matches, int with, std::int64_t wanted, std::int64_t got);
  const char* given_to(int rank) const noexcept {
    return static_cast<const char*>(what_.in) + pattern_.gives(rank).begin * what_.in_size();
  }
  char* taken_from(int rank) const noexcept {
    return static_cast<char*>(what_.out) + pattern_.takes(rank).begin * what_.in_size();
  }
  std::int64_t bytes_to(int rank) const noexcept {
    return pattern_.gives(rank).count * what_.in_size();
  }
  std::int64_t bytes_from(int rank) const noexcept {
    return pattern_.takes(rank).count * what_.in_size();
  }

  static bool host_may_combine(const host_engine& by, const terms& what);
  bool combined_by_host();
  void spread_from_root();
  void share_with_all();
  void trade_blocks();
  std::int64_t agree_on_blocks();
  void stage_gives(std::int64_t unit, std::int64_t step);

  host_caller& caller_;
  host_engine& engine_;
  const operation& what_;
  const comm::pattern pattern_;
  const std::uint64_t sequence_;
  const int size_;
  std::vector<host_opening> openings_;
  bool opened_ = false;
};

}  // namespace velo::comm
