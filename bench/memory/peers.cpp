// dlopen, each library bound to itself.
#include "bench/memory/peers.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace velo::bench {

void reserve_static_tls(char** arguments) {
  if (setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384", 0) != 0) return;
  if (getenv("VELO_BENCH_STARTED") != nullptr) return;
  setenv("VELO_BENCH_STARTED", "1", 1);
  execv("/proc/self/exe", arguments);
}

std::vector<peer_allocator> load_peers() {
  struct library {
    const char *name, *file, *package, *allocate, *free;
  };
  static constexpr library libraries[] = {
      {"mimalloc", "libmimalloc.so.2.0", "libmimalloc2.0", "mi_malloc", "mi_free"},
      {"jemalloc", "libjemalloc.so.2", "libjemalloc2", "malloc", "free"},
      {"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4", "tc_malloc", "tc_free"}};
  std::vector<peer_allocator> found{{"glibc", &std::malloc, &std::free}};
  for (const library& l : libraries) {
    void* loaded = dlopen(l.file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (loaded == nullptr) {
      std::fprintf(stderr, "bench_memory: without %s: %s (Debian: %s)\n", l.name, dlerror(),
                   l.package);
      continue;
    }
    found.push_back({l.name, reinterpret_cast<void* (*)(std::size_t)>(dlsym(loaded, l.allocate)),
                     reinterpret_cast<void (*)(void*)>(dlsym(loaded, l.free))});
  }
  return found;
}

}  // namespace velo::bench
