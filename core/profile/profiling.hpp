// Whether a context is profiled, and the way of events to the recorder.
//
// Work asks level() before it takes times: a load where nothing records. add() keeps the recorder
// in place while it writes; detach() waits for such writers, so that events are read whole.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/profile/recorder.hpp"

namespace velo::core {

class profiling {
 public:
  // velo_profiler_level; below 0: nothing records.
  int level() const noexcept { return level_.load(std::memory_order_relaxed); }
  bool is_on() const noexcept { return level() >= 0; }
  bool has_work() const noexcept { return level() >= 1; }
  bool has_waits() const noexcept { return level() >= 2; }

  // Completes the event with the calling thread and the time, and records it.
  void add(profile_event e) noexcept;

  // false: another one records.
  bool attach(recorder& to, int level) noexcept;
  void detach(const recorder& from) noexcept;

 private:
  std::atomic<int> level_{-1};
  std::atomic<recorder*> to_{nullptr};
  std::atomic<int> writers_{0};
};

// Records a wait from here to the end of the scope, if the context is profiled with waits.
class profiled_wait {
 public:
  profiled_wait(profiling& by, const char* name) noexcept
      : by_(by), name_(name), begin_(by.has_waits() ? ticks_now() : 0) {}
  ~profiled_wait() {
    if (begin_ == 0) return;
    profile_event e;
    e.begin = begin_;
    e.name = name_;
    e.kind = profiled::wait;
    by_.add(e);
  }
  profiled_wait(const profiled_wait&) = delete;
  profiled_wait& operator=(const profiled_wait&) = delete;

 private:
  profiling& by_;
  const char* name_;
  std::uint64_t begin_;
};

}  // namespace velo::core
