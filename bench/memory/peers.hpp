// The allocators beside the pool: glibc's, and Debian's mimalloc, jemalloc and tcmalloc, loaded at
// run time into names of their own, so that each serves only what is asked of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace velo::bench {

struct peer_allocator {
  std::string name;
  void* (*allocate)(std::size_t bytes);
  void (*free)(void* memory);
};

// Room for the thread-local variables of libraries that are loaded late, which Linux sets aside
// when a program starts: starts this program again where it is not set.
void reserve_static_tls(char** arguments);

// The allocators that are installed; a sentence on standard error names each that is missing.
std::vector<peer_allocator> load_peers();

}  // namespace velo::bench
