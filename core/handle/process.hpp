// The epoch of this process: a number that changes in the child of a fork and nowhere else.
//
// Every call reads it, so reading must be a load and not a system call. The number is on a page
// that Linux wipes in a child (MADV_WIPEONFORK). If Linux is too old for that, a fork handler wipes
// it.
//
// Every lock that belongs to the process and not to a context is a process_lock, because a fork
// copies a lock's state: the copy stays held if another thread held it.
#pragma once

#include <atomic>
#include <cstdint>

namespace velo::core {

// The number's address: on the page, or a constant zero until there is a page.
extern std::atomic<std::atomic<std::uint32_t>*> epoch_word;

// The current number; 0 before the first object, and in a child that has not made an object yet.
inline std::uint32_t process_epoch() noexcept {
  return epoch_word.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
}

// The current number; gives the process one if it has none. Throws VELO_ERR_MEMORY.
std::uint32_t start_process_epoch();

// A lock of the process, in static storage. If a process forks while another thread holds it, the
// lock stays held in the child; the child sees an older epoch in it and takes it over. The guarded
// data may then be half changed. Not re-entrant. Cost: two atomic exchanges.
class process_lock {
 public:
  constexpr process_lock() noexcept = default;
  process_lock(const process_lock&) = delete;
  process_lock& operator=(const process_lock&) = delete;

  // Returns true if the lock was taken over: the guarded data must then be set up again. Throws as
  // start_process_epoch does, but never after an object was made.
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
