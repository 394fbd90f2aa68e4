// A snapshot of a pool at one moment: its blocks, counters and history, and the forms in which they
// are written.
//
// Blocks and counters are copied under the pool's lock and are exact, except for threads that
// allocate without the lock meanwhile. Writing no longer needs the pool. JSON and pickle hold the
// structure of torch's memory snapshots, so that its viewer reads them: a segment is a stretch of
// addresses with memory behind it, a trace has the history's events. Cost of writing: 0.1 to 0.2 us
// an event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/text/sink.hpp"
#include "memory/history/history.hpp"
#include "memory/pool/heap/block.hpp"
#include "velo/pool.h"

namespace velo::memory {

extern const char* const purpose_names[purposes];

struct snapshot {
  struct seen_block {
    std::uint64_t address;
    std::uint64_t size;
    std::uint64_t requested;  // in use
    block_state state;
    std::uint8_t purpose;
  };
  struct segment {
    std::uint64_t address, size;
    std::size_t first, count;  // in `blocks`
    std::uint8_t lifetime;
  };
  std::vector<seen_block> blocks;
  std::vector<segment> segments;
  past events;
  velo_pool_stats stats{};
  std::uint64_t limit = 0;
  bool checked = false;
  core::instant taken;

  // Ticks as the wall clock's nanoseconds.
  core::tick_scale times() const noexcept { return {events.begin, taken}; }
};

void write_json(const snapshot& what, core::sink& to);
void write_pickle(const snapshot& what, core::sink& to);
std::string draw_timeline(const snapshot& what);

}  // namespace velo::memory
