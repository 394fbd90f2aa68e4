// Which process this is, counted in forks: a number that changes in a child and nowhere else.
//
// It is read at every call, so it must cost a load and not a system call: the number stands on a
// page that Linux hands to a child wiped (MADV_WIPEONFORK). Where Linux is too old for
// that, a fork handler wipes it.
//
// Every lock that belongs to the process and not to a context is a process_lock, because a fork
// copies it as it is: held, when another thread was inside.
#pragma once

#include <atomic>
#include <cstdint>

namespace velo::core {

// The number's address: on the page, or a zero that nobody writes until there is a page.
extern std::atomic<std::atomic<std::uint32_t>*> epoch_word;

// The current number; 0 in a child that has made nothing of its own yet, and before the first
// object.
inline std::uint32_t process_epoch() noexcept {
  return epoch_word.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
}

// The current number, given to the process now if it has none. Throws VELO_ERR_MEMORY.
std::uint32_t start_process_epoch();

// A lock of the process, one object in static storage. A fork while another thread holds it leaves
// it held for ever in the child, which sees an older epoch in it and takes it over; what it guards
// may then be half changed. Not re-entrant. Cost: two atomic exchanges.
class process_lock {
 public:
  constexpr process_lock() noexcept = default;
  process_lock(const process_lock&) = delete;
  process_lock& operator=(const process_lock&) = delete;

  // True when it was taken over: what it guards has to be set up anew. Throws as
  // start_process_epoch does, which is never where an object was made before.
  [[nodiscard]] bool lock();
  void unlock() noexcept;

 private:
  std::atomic<std::uint32_t> holder_{0};
};

// Holds a process_lock for a scope.
class process_guard {
 public:
  explicit process_guard(process_lock& lock) : lock_(lock), taken_over_(lock.lock()) {}
  ~process_guard() { lock_.unlock(); }
  process_guard(const process_guard&) = delete;
  process_guard& operator=(const process_guard&) = delete;

  bool taken_over() const noexcept { return taken_over_; }

 private:
  process_lock& lock_;
  bool taken_over_;
};

}  // namespace velo::core
