// The recorder of a profile: events of a context's work, in memory that is reserved when recording
// begins.
//
// Threads write without a lock: each takes the next place by an atomic count. Writing cannot fail;
// events that find no room are counted. Ranges of the host are kept open by thread, under a lock,
// and become events when they end. Events are read after the recording has ended, when no thread
// writes any more (profiling.hpp), and are then in the order of their ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/host/ticks.hpp"

namespace velo::core {

// The values are velo_profiler_kind's.
enum class profiled : std::uint8_t { operator_call, collective, range, wait, failed };

struct profile_event {
  std::uint64_t begin = 0, end = 0;  // ticks
  const char* name = nullptr;        // static; nullptr: it is the text
  const char* detail = nullptr;      // static; nullptr: it is the text, unless that is the name
  double flops = 0, bytes = 0;
  std::int32_t thread = 0;
  profiled kind = profiled::operator_call;
  char text[64] = "";
};

inline const char* name_of(const profile_event& e) noexcept {
  return e.name != nullptr ? e.name : e.text;
}
inline const char* detail_of(const profile_event& e) noexcept {
  return e.detail != nullptr ? e.detail : e.name != nullptr ? e.text : "";
}

// The number of the calling thread, as the system has it.
std::int32_t thread_number() noexcept;

class recorder {
 public:
  explicit recorder(std::uint64_t events);  // throws bad_alloc

  void add(const profile_event& e) noexcept;

  // Ranges of the calling thread. text: cut at 63 bytes. false: no range is open.
  void begin_range(const char* text);
  bool end_range() noexcept;

  // After the last writer: ends all ranges, orders the events.
  void finish();

  std::uint64_t kept() const noexcept;
  std::uint64_t dropped() const noexcept;
  const std::vector<profile_event>& events() const noexcept { return events_; }
  // The names of the threads that were alive at the end, by thread_number.
  struct thread_name {
    std::int32_t thread;
    std::string name;
  };
  const std::vector<thread_name>& threads() const noexcept { return threads_; }

  std::int64_t begin_ns() const noexcept { return begin_.ns; }
  std::int64_t end_ns() const noexcept { return end_.ns; }  // 0: not finished
  // When something happened, by CLOCK_MONOTONIC.
  std::int64_t ns_at(std::uint64_t ticks) const noexcept {
    return tick_scale(begin_, end_).at(ticks);
  }

 private:
  struct open_range {
    std::int32_t thread;
    profile_event event;
  };
  void name_threads();

  std::vector<profile_event> events_;
  std::atomic<std::uint64_t> taken_{0};
  std::mutex ranges_lock_;
  std::vector<open_range> ranges_;
  std::vector<thread_name> threads_;
  instant begin_, end_;
};

}  // namespace velo::core
