// Names of ISAs; vendor and caches by CPUID; thread count by affinity mask and cgroup quota.
#include "core/host/cpu.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

#include "core/host/cgroup.hpp"
#include "core/host/cpuid.hpp"

namespace velo::core {
namespace {

// Deterministic cache parameters, leaf 4 (Intel) or 0x8000001d (AMD): the same format.
void read_caches(unsigned leaf, cache_sizes& out) {
  for (unsigned i = 0; i < 8; ++i) {
    const registers r = cpuid(leaf, i);
    const unsigned type = r.a & 31u, level = (r.a >> 5) & 7u;
    if (type == 0) return;
    if (type == 2) continue;  // instructions
    const std::int64_t ways = (r.b >> 22) + 1, parts = ((r.b >> 12) & 1023u) + 1,
                       line = (r.b & 4095u) + 1, sets = static_cast<std::int64_t>(r.c) + 1;
    const std::int64_t size = ways * parts * line * sets;
    if (level == 1) out.l1d = size;
    if (level == 2) out.l2 = size;
    if (level == 3) out.l3 = size;
  }
}

constexpr const char* names[] = {
#include "core/simd/isa_names.inc"
};

}  // namespace

const char* isa_name(isa which) {
  return names[static_cast<int>(which)];
}

bool parse_isa(const char* name, isa& out) {
  for (int i = 0; i < static_cast<int>(std::size(names)); ++i) {
    if (std::strcmp(name, names[i]) != 0) continue;
    out = static_cast<isa>(i);
    return true;
  }
  return false;
}

vendor detect_vendor() {
  registers zero;
  char name[13] = "";
  if (__get_cpuid(0, &zero.a, &zero.b, &zero.c, &zero.d) == 0) return vendor::other;
  std::memcpy(name, &zero.b, 4);
  std::memcpy(name + 4, &zero.d, 4);
  std::memcpy(name + 8, &zero.c, 4);
  if (std::strcmp(name, "GenuineIntel") == 0) return vendor::intel;
  return std::strcmp(name, "AuthenticAMD") == 0 ? vendor::amd : vendor::other;
}

// Detected once, since each CPUID leaf takes 50 us in a virtual machine. Atomics are used because a
// child of a fork may wait for ever for a static initialized on first use. A nonzero l3 means that
// all three are set.
cache_sizes detect_caches() {
  static std::atomic<std::int64_t> l1d{0}, l2{0}, l3{0};
  if (const std::int64_t known = l3.load(std::memory_order_acquire); known != 0)
    return {l1d.load(std::memory_order_relaxed), l2.load(std::memory_order_relaxed), known};
  cache_sizes sizes{32 << 10, 512 << 10, 4 << 20};
  const bool amd_form = cpuid(0x80000000u).a >= 0x8000001du && (cpuid(0x8000001du).a & 31u) != 0;
  read_caches(amd_form ? 0x8000001du : 4u, sizes);
  sizes.l3 = std::min<std::int64_t>(sizes.l3, 32 << 20);
  l1d.store(sizes.l1d, std::memory_order_relaxed);
  l2.store(sizes.l2, std::memory_order_relaxed);
  l3.store(sizes.l3, std::memory_order_release);
  return sizes;
}

int usable_threads() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int threads = 1;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    threads = CPU_COUNT(&mask);
  } else {
    threads =
        static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // more processors than the mask holds
  }
  const int quota = cgroup_processors();
  if (quota > 0) threads = std::min(threads, quota);
  return std::max(threads, 1);
}

}  // namespace velo::core
