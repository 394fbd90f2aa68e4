// A rank's private state in a shared area, and how the rank waits for its peers there.
//
// A wait spins where each rank has a processor of its own, then yields, then sleeps. Between yields
// and sleeps it checks whether the group has ended.
#pragma once

#include <sched.h>

#include <algorithm>
#include <vector>

#include "comm/operation/message.hpp"
#include "comm/transport/shared/messages/message_heap.hpp"
#include "comm/transport/shared/peer_mappings.hpp"
#include "comm/transport/shared/peer_writer.hpp"
#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/wait_board.hpp"
#include "core/host/clock.hpp"

namespace velo::comm {

// Progress of another group, whose ranks include those of this one. A rank that waits in this group
// polls it.
class progress_hook {
 public:
  virtual ~progress_hook() = default;
  virtual void poll(std::int64_t waited_ns, const rank_set& awaited) = 0;  // throws PEER
};

// The area as one rank sees it, and the rank's state between operations.
struct rank_context {
  shared_area area;
  int rank;
  std::int64_t timeout_ns;
  std::int64_t spin_ns;                        // 0: there are more ranks than processors
  liveness_watch* watch;                       // nullptr: no peer can disappear silently
  std::vector<const void*> sources;            // of a reduction: one address for each rank
  std::uint64_t operations = 0;                // begun
  std::uint64_t steps = 0;                     // taken
  std::vector<char> blocked = {};              // message channels that are stuck: two for each rank
  std::vector<std::uint64_t> seen_taken = {};  // each rank's `taken` counter, as last read
  std::vector<message> started = {};           // messages that later calls continue, in order
  message_heap heap = {};                      // blocks of this rank that peers read
  peer_writer writer{};
  std::uint64_t steps_posted = 0;     // steps that all ranks are known to have posted
  std::uint64_t deferred = 0;         // operation whose peers were not awaited yet (peer_wait.hpp)
  peer_mappings* mappings = nullptr;  // nullptr: no rank registers memory
  progress_hook* progress = nullptr;  // outlives the transport
  wait_board waits = {};              // where this rank notes for whom it waits
};

using core::now_ns;

inline constexpr std::int64_t yield_ns = 200000;               // after spinning, before sleeping
inline constexpr std::int64_t poll_interval_ns = 50000000;     // the longest sleep
inline constexpr std::int64_t progress_interval_ns = 2000000;  // the longest with a progress hook

// Waits until is_ready(). check(waited_ns) throws when there is nothing left to wait for; it also
// enforces the deadline. sleep(ns) sleeps on the awaited word for at most so long.
template <class IsReady, class Check, class Sleep>
void wait_until(const rank_context& self, IsReady&& is_ready, Check&& check, Sleep&& sleep) {
  // The first polls take a few microseconds. Ranks that share a processor poll once: the awaited
  // peer may need it.
  const int polls = self.spin_ns > 0 ? 256 : 1;
  for (int i = 0; i < polls; ++i) {
    if (is_ready()) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  const std::int64_t begin = now_ns();
  while (!is_ready()) {
    const std::int64_t waited = now_ns() - begin;
    if (waited < self.spin_ns) continue;
    check(waited);
    if (waited < self.spin_ns + yield_ns) {
      sched_yield();
    } else {
      sleep(std::min(self.progress != nullptr ? progress_interval_ns : poll_interval_ns,
                     std::max(self.timeout_ns - waited, std::int64_t{1})));
    }
  }
}

// Ends the group with `why`, or keeps an earlier recorded fault; raises the recorded one.
[[noreturn]] void end_group(const rank_context& self, fault why);

// Ends the group because a word of `peer` in shared memory has a value that no rank writes.
[[noreturn]] void end_as_corrupt(const rank_context& self, int peer, fault why);

// The first raises a recorded fault. The second ends the group if `peer` left it or a process is
// gone; `why` describes the operation at hand.
void raise_recorded_fault(const rank_context& self);
void raise_if_gone(const rank_context& self, int peer, std::int64_t waited_ns, const fault& why);

}  // namespace velo::comm
