// Reads CPUID, /proc and sched_*; nothing here is hot. A hypervisor may mask family and model, so
// parts with AMX differ in features: AMX-FP16 came with Granite Rapids.
#include "bench/limits/machine.hpp"

#include <cpuid.h>
#include <dirent.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <thread>
#include <utility>

namespace velo::bench {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
// Beyond what a buffer asks for. Streams a power of two apart in memory meet in the same banks:
// four arrays of 128 MiB side by side ran at a third of their speed (one Zen 4).
constexpr std::size_t stagger = 3 * huge_page;

std::string read_brand() {
  char text[49] = {};
  unsigned a, b, c, d;
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    if (!__get_cpuid(0x80000002u + leaf, &a, &b, &c, &d)) return "unknown processor";
    const unsigned words[4] = {a, b, c, d};
    std::memcpy(text + 16 * leaf, words, sizeof words);
  }
  std::string brand(text);
  while (!brand.empty() && brand.back() == ' ') brand.pop_back();
  return brand;
}

bool request_amx() {
  constexpr long arch_req_xcomp_perm = 0x1023;
  constexpr long tile_data = 18;
  return syscall(SYS_arch_prctl, arch_req_xcomp_perm, tile_data) == 0;
}

bool has_amx_bf16() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1);
}

bool has_amx_fp16() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 21 & 1);
}

std::string name_kind(const std::string& brand) {
  unsigned a = 0, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return brand;
  const unsigned base = a >> 8 & 15;
  const unsigned family = base == 15 ? base + (a >> 20 & 255) : base;
  const unsigned model = (a >> 4 & 15) | (a >> 12 & 0xf0);
  const bool amd = brand.find("AMD") != std::string::npos;
  if (amd && family == 26) return "zen5";
  const bool zen4_model = (model >= 0x10 && model <= 0x1f) || (model >= 0x60 && model <= 0x7f) ||
                          (model >= 0xa0 && model <= 0xaf);
  if (amd && family == 25 && zen4_model) return "zen4";
  if (!amd && has_amx_bf16()) return has_amx_fp16() ? "granite rapids" : "sapphire rapids";
  return brand;
}

// Rank of an instruction set's name; an unknown or empty one lowers nothing.
int rank_of(const std::string& isa) {
  static constexpr const char* names[] = {"scalar", "avx2", "avx512", "avx512_bf16", "amx"};
  for (int rank = 0; rank < 5; ++rank)
    if (isa == names[rank]) return rank;
  return 4;
}

std::int64_t involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

double read_clock(clockid_t which) {
  timespec now{};
  clock_gettime(which, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void pin(int thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(thread, sizeof set, &set);
}

std::vector<int> list_threads() {
  std::vector<int> ids;
  DIR* folder = opendir("/proc/self/task");
  if (!folder) return ids;
  while (const dirent* entry = readdir(folder))
    if (entry->d_name[0] != '.') ids.push_back(std::atoi(entry->d_name));
  closedir(folder);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

machine identify_machine() {
  const char* value = std::getenv("VELO_ISA");
  return identify_machine(value ? value : "");
}

machine identify_machine(const std::string& isa) {
  machine m;
  m.brand = read_brand();
  m.kind = name_kind(m.brand);
  __builtin_cpu_init();
  const int ceiling = rank_of(isa);
  m.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && ceiling >= 1;
  m.avx512 = m.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && ceiling >= 2;
  m.avx512_bf16 = m.avx512 && __builtin_cpu_supports("avx512bf16") && ceiling >= 3;
  m.amx = m.avx512_bf16 && ceiling >= 4 && has_amx_bf16() && request_amx();
  m.cache_bytes =
      std::max<std::int64_t>({sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE), 0});
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) m.cpus.push_back(cpu);
  return m;
}

void pin_thread(int cpu) {
  pin(0, cpu);
}

void pin_workers(const std::vector<int>& cpus, int threads) {
  if (threads < 2 || cpus.size() < 2) return;
  const auto places = std::min(static_cast<std::size_t>(threads), cpus.size()) - 1;
  std::size_t next = 0;
  for (int id : list_threads())
    if (id != static_cast<int>(gettid())) pin(id, cpus[1 + next++ % places]);
}

double run_pinned(const std::vector<int>& cpus, int threads, const std::function<void(int)>& body) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<double> seconds(static_cast<std::size_t>(threads));
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] {
      pin_thread(cpus[static_cast<std::size_t>(t) % cpus.size()]);
      ready.fetch_add(1);
      while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
      stopwatch watch(true);
      body(t);
      watch.stop();
      seconds[static_cast<std::size_t>(t)] = watch.seconds();
    });
  while (ready.load() < threads) std::this_thread::yield();
  go.store(true, std::memory_order_release);
  for (std::thread& member : team) member.join();
  return *std::max_element(seconds.begin(), seconds.end());
}

stopwatch::stopwatch(bool alone)
    : alone_(alone),
      switches_(involuntary_switches()),
      cpu_(read_clock(CLOCK_THREAD_CPUTIME_ID)),
      wall_(read_clock(CLOCK_MONOTONIC)) {}

void stopwatch::stop() {
  wall_ = read_clock(CLOCK_MONOTONIC) - wall_;
  cpu_ = read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_;
  disturbed_ = involuntary_switches() != switches_;
}

double load_average() {
  double loads[1] = {0};
  return getloadavg(loads, 1) == 1 ? loads[0] : 0;
}

buffer::buffer(std::size_t bytes)
    : bytes_(bytes), mapped_((bytes + huge_page - 1) / huge_page * huge_page + stagger) {
  void* p = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  madvise(p, mapped_, MADV_HUGEPAGE);
  std::memset(p, 0, mapped_);
  data_ = p;
}

buffer::~buffer() {
  if (data_) munmap(data_, mapped_);
}

buffer::buffer(buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

buffer& buffer::operator=(buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

}  // namespace velo::bench
