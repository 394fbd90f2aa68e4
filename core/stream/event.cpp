// Waiting for a point: a futex on its state.
#include "core/stream/event.hpp"

#include <climits>
#include <utility>

#include "core/failure.hpp"
#include "core/host/clock.hpp"
#include "core/host/futex.hpp"

namespace velo::core {

void point::pass() noexcept {
  if (state_.exchange(reached, std::memory_order_acq_rel) == awaited) futex_wake(state_, INT_MAX);
}

bool point::wait(std::int64_t timeout_ns) noexcept {
  const std::int64_t begin = timeout_ns > 0 ? now_ns() : 0;
  while (true) {
    std::uint32_t seen = state_.load(std::memory_order_acquire);
    if (seen == reached) return true;
    if (timeout_ns == 0) return false;
    if (seen == open && !state_.compare_exchange_strong(seen, awaited, std::memory_order_acq_rel))
      continue;
    if (timeout_ns < 0) {
      futex_wait(state_, awaited);
      continue;
    }
    const std::int64_t left = timeout_ns - (now_ns() - begin);
    if (left <= 0) return passed();
    const timespec time{static_cast<time_t>(left / 1000000000),
                        static_cast<long>(left % 1000000000)};
    futex_wait(state_, awaited, &time);
  }
}

std::shared_ptr<point> event::last() const {
  const std::lock_guard<std::mutex> lock(lock_);
  if (last_ == nullptr) fail(VELO_ERR_STATE, "event", "a recorded event", "one never recorded");
  return last_;
}

// If no queue, no waiter and not last_ holds a kept point, it is free: it can then be reached only
// under this lock.
std::shared_ptr<point> event::next() {
  const std::lock_guard<std::mutex> lock(lock_);
  for (std::shared_ptr<point>& kept : kept_) {
    if (kept == nullptr) return kept = std::make_shared<point>();
    if (kept.use_count() > 1) continue;
    kept->reopen();
    return kept;
  }
  return std::make_shared<point>();
}

void event::set(std::shared_ptr<point> recorded) {
  const std::lock_guard<std::mutex> lock(lock_);
  last_.swap(recorded);
}

}  // namespace velo::core
