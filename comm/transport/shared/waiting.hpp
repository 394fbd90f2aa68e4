// How a rank waits for its peers in shared memory: it spins, where each rank has a processor of its
// own, then yields, then sleeps; and looks for what ends a group.
#pragma once

#include <sched.h>

#include <algorithm>
#include <vector>

#include "comm/transport/shared/lending.hpp"
#include "comm/transport/shared/peer_writer.hpp"
#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/shared/windows.hpp"
#include "core/host/clock.hpp"

namespace velo::comm {

// What goes on beside the area, in a group that this one is a part of: looked after by who waits in
// it.
class outside {
 public:
  virtual ~outside() = default;
  virtual void look(std::int64_t waited_ns, const rank_set& awaited) = 0;  // throws PEER
};

// A rank's place in an area, and what it keeps from one operation to the next.
struct place {
  shared_area area;
  int rank;
  std::int64_t timeout_ns;
  std::int64_t spin_ns;                        // 0: more ranks than processors
  peer_watch* watch;                           // nullptr: peers cannot be gone without a word
  std::vector<const void*> sources;            // a place for each rank
  std::uint64_t met = 0;                       // operations begun
  std::uint64_t steps = 0;                     // taken
  std::vector<char> blocked = {};              // of messages: two for each rank, by direction
  std::vector<std::uint64_t> seen_taken = {};  // of messages: by each rank, when last looked
  std::vector<message> started = {};           // that go on with later calls, in order
  lending own = {};                            // our blocks that peers read
  peer_writer writer{};
  std::uint64_t posted = 0;   // steps that all ranks are known to have posted
  std::uint64_t owes = 0;     // a look at who came to this operation (attendance.hpp)
  windows* lent = nullptr;    // nullptr: no rank lends memory
  outside* beside = nullptr;  // nullptr: nothing is; outlives the transport
};

using core::now_ns;

inline constexpr std::int64_t yield_ns = 200000;     // after spinning, before sleeping
inline constexpr std::int64_t glance_ns = 50000000;  // the longest sleep
inline constexpr std::int64_t look_ns = 2000000;     // where there is something outside

// Until there(). around(waited_ns): whether there is anything left to wait for, throws when not.
// sleep(ns): at most so long, on what is awaited. The deadline is around's.
template <class There, class Around, class Sleep>
void wait_until(const place& at, There&& there, Around&& around, Sleep&& sleep) {
  // Before the first yield, a few microseconds of looks; one, where ranks share a processor, which
  // the peer awaited may need.
  const int looks = at.spin_ns > 0 ? 256 : 1;
  for (int i = 0; i < looks; ++i) {
    if (there()) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  const std::int64_t begin = now_ns();
  while (!there()) {
    const std::int64_t waited = now_ns() - begin;
    if (waited < at.spin_ns) continue;
    around(waited);
    if (waited < at.spin_ns + yield_ns) {
      sched_yield();
    } else {
      sleep(std::min(at.beside != nullptr ? look_ns : glance_ns,
                     std::max(at.timeout_ns - waited, std::int64_t{1})));
    }
  }
}

// Ends the group, unless another fault came first; raises the one that holds.
[[noreturn]] void end_group(const place& at, fault why);

// The same: a word of `peer` in shared memory is none that a rank writes.
[[noreturn]] void end_as_corrupt(const place& at, int peer, fault why);

// Raise what ended the group: a fault somebody noted; `peer` that left or a process that is gone,
// in the operation of which `why` tells.
void raise_if_noted(const place& at);
void raise_if_gone(const place& at, int peer, std::int64_t waited_ns, const fault& why);

}  // namespace velo::comm
