// Which process this is, counted in forks: a number that changes in a child and nowhere else.
//
// It is read at every call, so it must cost a load and not a system call: the number stands on a
// page that the kernel hands to a child wiped (MADV_WIPEONFORK). Where the kernel is too old for
// that, a fork handler wipes it.
#pragma once

#include <cstdint>

namespace velo::core {

// The current number; 0 in a child that has made nothing of its own yet, and before the first
// object.
std::uint32_t process_epoch() noexcept;

// The current number, given to the process now if it has none. Throws VELO_ERR_MEMORY.
std::uint32_t start_process_epoch();

}  // namespace velo::core
