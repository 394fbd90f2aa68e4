// The last calls of a group, as this rank made them.
//
// The records are a ring whose memory is reserved at the beginning, so writing one cannot fail.
// Times are kept as ticks (core/host/ticks.hpp) and converted when they are read; the clock for the
// conversion was read before the oldest record. Not thread-safe. A call costs three accesses to a
// cache line and two reads of the tick counter.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/operation/operation.hpp"
#include "core/host/ticks.hpp"
#include "core/profile/recorder.hpp"
#include "core/text/json_writer.hpp"

namespace velo::comm {

enum class ending : std::uint8_t { none, done, failed, dropped };

class history {
 public:
  static constexpr std::size_t most = 4096;

  history() : earlier_(core::instant::now(CLOCK_MONOTONIC)), later_(earlier_) {
    records_.reserve(most);
  }

  void call(std::uint64_t number, const request& what) noexcept;
  // A call that begins within another group's may begin again there: the later time counts.
  void begin(std::uint64_t number) noexcept;
  // sequence_of: the sequence number of a call that has begun, or 0. count_another: counts a
  // collective that the group itself runs on all ranks, without a caller.
  std::uint64_t sequence_of(std::uint64_t number) noexcept;
  void count_another() noexcept { ++sequence_; }
  void end(std::uint64_t number, ending how) noexcept;
  // A call that has ended, as an event of a profile without its text; begin 0: it never began.
  core::profile_event event_of(std::uint64_t number) noexcept;
  void write(core::json_writer& to) const;  // an array, the oldest first

 private:
  struct record {
    std::uint64_t number = 0;    // of the call
    std::uint64_t sequence = 0;  // among all ranks' operations; 0: not begun, or not one
    comm::terms terms;
    std::int64_t bytes = 0;
    std::uint64_t begun = 0, ended = 0;  // ticks; 0: not yet
    ending how = ending::none;
  };

  record* find(std::uint64_t number) noexcept;  // nullptr: already overwritten

  std::vector<record> records_;  // number n at (n - 1) % most
  core::instant earlier_,
      later_;               // when the ring began before last, and last
  std::uint64_t last_ = 0;  // number
  std::uint64_t sequence_ = 0;
};

}  // namespace velo::comm
