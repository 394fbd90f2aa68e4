// Requests Linux's permission to use AMX.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "core/simd/detect.hpp"

namespace velo::core {

bool amx_permitted() noexcept {
  enum answer { unknown, no, yes };
  static std::atomic<int> remembered{unknown};
  int known = remembered.load(std::memory_order_relaxed);
  if (known == unknown) {
    constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr int tile_data = 18;
    known = syscall(SYS_arch_prctl, request_permission, tile_data) == 0 ? yes : no;
    remembered.store(known, std::memory_order_relaxed);
  }
  return known == yes;
}

}  // namespace velo::core
