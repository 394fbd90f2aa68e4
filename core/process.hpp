// Which process this is, counted in forks: a number that changes in a child and nowhere else.
//
// It is read at every call, so it must cost a load and not a system call: the number stands on a
// page that Linux hands to a child wiped (MADV_WIPEONFORK). Where Linux is too old for
// that, a fork handler wipes it.
#pragma once

#include <atomic>
#include <cstdint>

namespace velo::core {

// Where the number stands: on the page, or in a zero that nobody writes until there is one.
extern std::atomic<std::atomic<std::uint32_t>*> epoch_word;

// The current number; 0 in a child that has made nothing of its own yet, and before the first
// object.
inline std::uint32_t process_epoch() noexcept {
  return epoch_word.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
}

// The current number, given to the process now if it has none. Throws VELO_ERR_MEMORY.
std::uint32_t start_process_epoch();

}  // namespace velo::core
