// Each question is put to the system by trying: no list of systems and policies is ever complete.
#include "core/os.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace velo::core {

bool can_map_code() noexcept {
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  const bool executable = mprotect(page, bytes, PROT_READ | PROT_EXEC) == 0;
  munmap(page, bytes);
  return executable;
}

}  // namespace velo::core
