// The system's calls for memory, counted and refused on demand: the linker puts these in the place
// of the pool's calls (tests/memory/CMakeLists.txt).
#pragma once

#include <cstdint>

namespace velo::test {

struct system_calls {
  int remaining = -1;         // calls until one is refused; -1: none is
  bool all_later = false;     // and every later one
  bool refused = false;       // one was
  std::int64_t mapped = 0;    // bytes mapped and not unmapped
  bool only_commits = false;  // refuse mprotect alone
  bool no_release = false;    // refuse to let memory go
  bool no_keys = false;       // refuse thread keys
};
system_calls& calls();

}  // namespace velo::test
