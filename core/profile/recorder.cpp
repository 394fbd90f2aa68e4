// Places are taken by a count; finish() drops the places that were never written.
#include "core/profile/recorder.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "core/failure.hpp"
#include "core/text/text.hpp"

namespace velo::core {

std::int32_t thread_number() noexcept {
  static thread_local const auto mine = static_cast<std::int32_t>(::syscall(SYS_gettid));
  return mine;
}

recorder::recorder(std::uint64_t events) : events_(events), begin_(instant::now(CLOCK_MONOTONIC)) {}

void recorder::add(const profile_event& e) noexcept {
  if (e.begin < begin_.ticks) return;  // before the recording
  const std::uint64_t at = taken_.fetch_add(1, std::memory_order_relaxed);
  if (at < events_.size()) events_[at] = e;
}

void recorder::begin_range(const char* text) {
  open_range one;
  one.thread = one.event.thread = thread_number();
  one.event.kind = profiled::range;
  copy_text(one.event.text, sizeof one.event.text, text);
  const std::lock_guard<std::mutex> lock(ranges_lock_);
  ranges_.push_back(one);
  ranges_.back().event.begin = ticks_now();
}

bool recorder::end_range() noexcept {
  const std::uint64_t now = ticks_now();
  const std::lock_guard<std::mutex> lock(ranges_lock_);
  const std::int32_t mine = thread_number();
  const auto last = std::find_if(ranges_.rbegin(), ranges_.rend(),
                                 [&](const open_range& one) { return one.thread == mine; });
  if (last == ranges_.rend()) return false;
  last->event.end = now;
  add(last->event);
  ranges_.erase(std::next(last).base());
  return true;
}

std::uint64_t recorder::kept() const noexcept {
  return std::min<std::uint64_t>(taken_.load(std::memory_order_acquire), events_.size());
}

std::uint64_t recorder::dropped() const noexcept {
  return taken_.load(std::memory_order_acquire) - kept();
}

void recorder::finish() {
  const std::uint64_t now = ticks_now();
  {
    const std::lock_guard<std::mutex> lock(ranges_lock_);
    for (open_range& one : ranges_) {
      one.event.end = now;
      add(one.event);
    }
    ranges_.clear();
  }
  const auto last = events_.begin() + static_cast<std::ptrdiff_t>(kept());
  std::stable_sort(events_.begin(), last,
                   [](const profile_event& a, const profile_event& b) { return a.end < b.end; });
  name_threads();
  end_ = instant::now(CLOCK_MONOTONIC);
}

void recorder::name_threads() {
  std::vector<std::int32_t> numbers;
  for (std::uint64_t i = 0; i < kept(); ++i) numbers.push_back(events_[i].thread);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (const std::int32_t each : numbers) {
    char name[64];
    const int file = ::open(core::text("/proc/self/task/%d/comm", each), O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file < 0 ? -1 : ::read(file, name, sizeof name);
    if (file >= 0) ::close(file);
    if (bytes > 0)
      threads_.push_back({each, std::string(name, static_cast<std::size_t>(bytes - 1))});
  }
}

}  // namespace velo::core
