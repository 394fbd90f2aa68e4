// Writers announce themselves before they look for the recorder, and detach() looks for writers
// after it has taken the recorder away: sequentially consistent, so one of them sees the other.
#include "core/profile/profiling.hpp"

#include <sched.h>

namespace velo::core {

void profiling::add(profile_event e) noexcept {
  e.end = ticks_now();
  e.thread = thread_number();
  writers_.fetch_add(1);
  if (recorder* to = to_.load()) to->add(e);
  writers_.fetch_sub(1);
}

bool profiling::attach(recorder& to, int level) noexcept {
  recorder* none = nullptr;
  if (!to_.compare_exchange_strong(none, &to)) return false;
  level_.store(level);
  return true;
}

void profiling::detach(const recorder& from) noexcept {
  if (to_.load() != &from) return;
  level_.store(-1);
  to_.store(nullptr);
  while (writers_.load() != 0) ::sched_yield();
}

}  // namespace velo::core
