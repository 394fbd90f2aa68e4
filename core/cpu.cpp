// Names of ISAs; vendor and caches by CPUID; thread count by affinity mask and cgroup quota.
#include "core/cpu.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>

#include "core/cpuid.hpp"

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

struct closes {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using open_file = std::unique_ptr<std::FILE, closes>;  // closed when memory runs out, too

// Numbers at the start of a file; returns how many of the two were read.
int read_numbers(const std::string& path, long long& first, long long& second) {
  const open_file file(std::fopen(path.c_str(), "re"));
  return file == nullptr ? 0 : std::fscanf(file.get(), "%lld %lld", &first, &second);
}

// The quota of one cgroup folder in whole processors, rounded up; 0 when it sets none. Version 2
// has one file ("max 100000" when there is no limit), version 1 two (quota -1).
int quota_of(const std::string& folder) {
  long long quota = 0, period = 0, unused = 0;
  const bool known = read_numbers(folder + "/cpu.max", quota, period) == 2 ||
                     (read_numbers(folder + "/cpu.cfs_quota_us", quota, unused) >= 1 &&
                      read_numbers(folder + "/cpu.cfs_period_us", period, unused) >= 1);
  if (!known || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<long long>((quota + period - 1) / period, 1 << 20));
}

// The tightest quota on the path from a cgroup to the root of its hierarchy; 0 when there is none.
int tightest_quota(const std::string& root, std::string path) {
  int least = 0;
  while (true) {
    const int here = quota_of(root + path);
    if (here > 0) least = least == 0 ? here : std::min(least, here);
    const std::size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return least;
    path.resize(slash);
  }
}

// Our own quota. A line of /proc/self/cgroup is number:controllers:path; version 2
// names no controllers.
int cgroup_quota() {
  const open_file file(std::fopen("/proc/self/cgroup", "re"));
  if (file == nullptr) return 0;
  int least = 0;
  char line[4096] = "";
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    line[std::strcspn(line, "\n")] = 0;
    const char* controllers = std::strchr(line, ':');
    const char* path = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (path == nullptr) continue;
    const std::string names = "," + std::string(controllers + 1, path) + ",";
    int here = 0;
    if (names == ",,") here = tightest_quota("/sys/fs/cgroup", path + 1);
    if (names.find(",cpu,") != std::string::npos)
      here = tightest_quota("/sys/fs/cgroup/cpu", path + 1);
    if (here > 0) least = least == 0 ? here : std::min(least, here);
  }
  return least;
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

// Asked once, as a virtual machine takes 50 us for each leaf; in atomics, because a child of a fork
// may wait for a constant made on first use for ever. The last level tells that all are known.
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
  const int quota = cgroup_quota();
  if (quota > 0) threads = std::min(threads, quota);
  return std::max(threads, 1);
}

}  // namespace velo::core
