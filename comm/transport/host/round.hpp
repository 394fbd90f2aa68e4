// A round: one collective of a group over a host's functions, as one rank carries it out.
//
// It begins with an opening that all ranks share: terms, the largest piece that a rank gives
// another, what has ended the group, if anything has, and what little data there is. When all
// agree, what is larger goes through the engine's memory in steps, of which all ranks make the
// same. Cost: a call of the host, and what its calls take for the data.
#pragma once

#include <functional>
#include <vector>

#include "comm/transport/host/engine.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

// What a rank says first.
struct host_opening {
  static constexpr std::int64_t room = 672;

  comm::terms terms;
  std::int64_t most = 0;  // bytes of the largest piece
  fault::how ended = fault::how::none;
  char cause[128] = "";
  rank_set culprits;  // of what has ended the group, as are
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
      : caller_(caller), engine_(engine), what_(what), sequence_(sequence), size_(engine.size) {}

  void run();  // throws host_failure, or the fault of the group
  bool opened() const noexcept { return opened_; }  // all ranks have met
  static void explain(const host_engine& by, const operation& what, explanation& to);

  // Work: what one rank tells the others, and what all have told.
  static void tell(host_engine& with, const host_opening& mine);
  static host_opening told(const host_engine& by, int rank);

 private:
  struct piece {
    const char* from = nullptr;
    char* to = nullptr;
    std::int64_t bytes = 0;
  };
  bool fits(std::int64_t bytes) const noexcept { return bytes <= host_opening::room; }
  char* from(int rank, std::int64_t bytes) const { return engine_.out() + rank * bytes; }
  void open(std::int64_t most, const void* payload, std::int64_t bytes);
  void compare() const;
  void agree(bool matches, int with, std::int64_t wanted, std::int64_t got);

  void combine(bool gets);
  static bool may_be_host_s(const host_engine& by, const terms& what);
  bool combined_by_host(bool gets);
  void reduce_scatter();
  void broadcast();
  void all_gather();
  void move(std::vector<piece> gives, std::vector<piece> takes);
  void all_to_all();
  void gather();
  void scatter();

  host_caller& caller_;
  host_engine& engine_;
  const operation& what_;
  const std::uint64_t sequence_;
  const int size_;
  std::vector<host_opening> openings_;
  bool opened_ = false;
};

}  // namespace velo::comm
