// Adaptors: the suite for allocators over each and over stacks of all, and what each is for.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/child_process.hpp"
#include "tests/host_memory.hpp"
#include "tests/memory/pool/allocator_conformance.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/memory/system.hpp"
#include "tests/refusals.hpp"
#include "tests/temporary_folder.hpp"

using namespace velo::testing;

namespace {

constexpr velo_device cpu{VELO_DEVICE_CPU, 0};

struct live_adaptor {
  velo_adaptor handle = nullptr;
  explicit live_adaptor(const velo_adaptor_desc& desc) {
    REQUIRE(velo_adaptor_create(&desc, &handle) == VELO_OK);
  }
  ~live_adaptor() { velo_adaptor_destroy(handle); }
  live_adaptor(const live_adaptor&) = delete;
  live_adaptor& operator=(const live_adaptor&) = delete;

  velo_allocator allocator() const {
    velo_allocator made = VELO_ALLOCATOR_INIT;
    REQUIRE(velo_adaptor_allocator(handle, &made) == VELO_OK);
    return made;
  }
  velo_adaptor_stats stats() const {
    velo_adaptor_stats now = VELO_ADAPTOR_STATS_INIT;
    REQUIRE(velo_adaptor_get_stats(handle, &now) == VELO_OK);
    return now;
  }
};

// A file in a folder of its own.
struct scratch_file {
  const temporary_folder folder;
  const std::string path = folder.at("trace.csv");
};

std::int32_t ignore(void*, velo_memory_event, void*, std::uint64_t, void*) {
  return 0;
}

velo_adaptor_desc desc_of(velo_adaptor_kind kind, const velo_allocator& upstream,
                          const std::string& path) {
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  desc.kind = kind;
  desc.upstream = &upstream;
  desc.limit = 256 * mib;
  desc.path = path.c_str();
  desc.event = &ignore;
  return desc;
}

void* take(const velo_allocator& a, std::uint64_t bytes) {
  return a.allocate(a.user, bytes, 64, &cpu, nullptr);
}
void give(const velo_allocator& a, void* memory, std::uint64_t bytes) {
  a.deallocate(a.user, memory, bytes, &cpu, nullptr);
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) all.push_back(line);
  return all;
}

}  // namespace

TEST_CASE("pools of every kind conform, in both modes") {
  for (const velo_pool_kind kind : every_pool_kind) {
    for (const bool checked : {false, true}) {
      const live_pool pool(pool_desc(kind, 0, checked));
      INFO("kind " << kind << ", checked " << checked);
      conformance(allocator_of(pool)).run();
      CHECK(pool.stats().bytes_live == 0);
      CHECK(velo_pool_check(pool) == VELO_OK);
    }
  }
}

TEST_CASE("every adaptor conforms, and the stack of all in each order of two") {
  const velo_adaptor_kind kinds[] = {VELO_ADAPTOR_LIMIT, VELO_ADAPTOR_STATISTICS,
                                     VELO_ADAPTOR_TRACE, VELO_ADAPTOR_CALLBACK};
  const scratch_file lower_file, upper_file;
  for (const velo_adaptor_kind low : kinds) {
    for (const velo_adaptor_kind high : kinds) {
      const live_pool pool(checked_pool());
      const live_adaptor below(desc_of(low, allocator_of(pool), lower_file.path));
      const live_adaptor above(desc_of(high, below.allocator(), upper_file.path));
      INFO(high << " over " << low);
      conformance(above.allocator()).run();
      CHECK(pool.stats().bytes_live == 0);
      for (const live_adaptor* a : {&below, &above}) {
        velo_adaptor_stats now = VELO_ADAPTOR_STATS_INIT;
        if (velo_adaptor_get_stats(a->handle, &now) != VELO_OK) continue;
        CHECK(now.bytes_live == 0);
        CHECK(now.allocations == now.frees);
        const bool spared = a == &below && high == VELO_ADAPTOR_LIMIT;  // the limit came first
        CHECK(now.failures == (spared ? 0 : 2));
      }
    }
  }
}

TEST_CASE("a limit is exact, and what fails below is not counted") {
  const live_pool pool(limited_pool(mib));
  const velo_allocator below = allocator_of(pool);
  velo_adaptor_desc desc = desc_of(VELO_ADAPTOR_LIMIT, below, "");
  desc.limit = 4 * mib;
  const live_adaptor limit(desc);
  const velo_allocator a = limit.allocator();
  CHECK(take(a, 4 * mib + 1) == nullptr);
  CHECK(take(a, 4 * mib) == nullptr);  // the pool's own limit
  CHECK(limit.stats().bytes_live == 0);
  void* block = take(a, 1000);
  REQUIRE(block != nullptr);
  CHECK(take(a, 4 * mib - 999) == nullptr);
  CHECK(limit.stats().bytes_live == 1000);
  CHECK(limit.stats().failures == 3);
  give(a, block, 1000);
  CHECK(limit.stats().bytes_live == 0);
  CHECK(limit.stats().frees == 1);
}

TEST_CASE("statistics count, and their peak holds no byte twice") {
  const live_pool pool;
  const live_adaptor statistics(desc_of(VELO_ADAPTOR_STATISTICS, allocator_of(pool), ""));
  const velo_allocator a = statistics.allocator();
  for (int i = 0; i < 10; ++i) give(a, take(a, 5000), 5000);
  CHECK(statistics.stats().bytes_peak == 5000);
  CHECK(statistics.stats().allocations == 10);
  CHECK(statistics.stats().frees == 10);
}

TEST_CASE("frees of too many bytes leave a limit and statistics at 0, and both go on") {
  for (const velo_adaptor_kind kind : {VELO_ADAPTOR_LIMIT, VELO_ADAPTOR_STATISTICS}) {
    const live_pool pool;
    const live_adaptor counting(desc_of(kind, allocator_of(pool), ""));
    const velo_allocator a = counting.allocator();
    void* first = take(a, 1000);
    give(a, first, 5000);
    CHECK(counting.stats().bytes_live == 0);
    give(a, first, 1000);  // freed before
    CHECK(counting.stats().bytes_live == 0);
    void* second = take(a, 2000);
    REQUIRE(second != nullptr);
    CHECK(counting.stats().bytes_live == 2000);
    CHECK(counting.stats().bytes_peak == 2000);
    give(a, second, 2000);
    CHECK(counting.stats().bytes_live == 0);
  }
}

TEST_CASE("a trace has a line for each call, for its owner alone, and follows no link") {
  const scratch_file file;
  const live_pool pool;
  const velo_allocator below = allocator_of(pool);
  std::uint64_t address = 0;
  {
    const live_adaptor trace(desc_of(VELO_ADAPTOR_TRACE, below, file.path));
    const velo_allocator a = trace.allocator();
    void* block = take(a, 1000);
    address = reinterpret_cast<std::uintptr_t>(block);
    give(a, block, 1000);
    CHECK(take(a, std::uint64_t{1} << 60) == nullptr);
    REQUIRE(velo_adaptor_flush(trace.handle) == VELO_OK);
    CHECK(lines_of(file.path).size() == 4);
    for (int i = 0; i < 5000; ++i) give(a, take(a, 64), 64);
  }
  const std::vector<std::string> lines = lines_of(file.path);
  REQUIRE(lines.size() == 4 + 10000);
  CHECK(lines[0] == "Thread,Time,Action,Pointer,Size,Stream");
  char expected[200];
  std::snprintf(expected, sizeof expected, "%d,0,allocate,0x%llx,1000,0",
                static_cast<int>(getpid()), static_cast<unsigned long long>(address));
  CHECK(lines[1] == expected);
  std::snprintf(expected, sizeof expected, "%d,1,free,0x%llx,1000,0", static_cast<int>(getpid()),
                static_cast<unsigned long long>(address));
  CHECK(lines[2] == expected);
  std::snprintf(expected, sizeof expected, "%d,2,allocate failure,0x0,1152921504606846976,0",
                static_cast<int>(getpid()));
  CHECK(lines[3] == expected);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string first = std::to_string(getpid()) + "," + std::to_string(i - 1) + ",";
    if (lines[i].compare(0, first.size(), first) != 0) FAIL("line " << i << ": " << lines[i]);
  }
  struct stat facts {};
  REQUIRE(stat(file.path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  const std::string link = file.folder.at("link");
  REQUIRE(symlink(file.path.c_str(), link.c_str()) == 0);
  velo_adaptor none = nullptr;
  const velo_adaptor_desc through_link = desc_of(VELO_ADAPTOR_TRACE, below, link);
  CHECK_REFUSED(velo_adaptor_create(&through_link, &none), VELO_ERR_IO, "desc.path");
}

TEST_CASE("a trace names the thread of each call, in a child of a fork too") {
  const scratch_file file;
  const live_pool pool;
  const auto thread_of_line = [&](std::size_t at) {
    const std::vector<std::string> lines = lines_of(file.path);
    return at < lines.size() ? std::atol(lines[at].c_str()) : -1;
  };
  long other = 0;
  {
    const live_adaptor trace(desc_of(VELO_ADAPTOR_TRACE, allocator_of(pool), file.path));
    const velo_allocator a = trace.allocator();
    void* block = take(a, 100);
    std::thread([&] {
      other = syscall(SYS_gettid);
      give(a, block, 100);
    }).join();
  }
  CHECK(thread_of_line(1) == getpid());
  CHECK(other != getpid());
  CHECK(thread_of_line(2) == other);
  CHECK(holds_in_child([&] {
    const live_pool own;
    const live_adaptor trace(desc_of(VELO_ADAPTOR_TRACE, allocator_of(own), file.path));
    give(trace.allocator(), take(trace.allocator(), 100), 100);
    return velo_adaptor_flush(trace.handle) == VELO_OK && thread_of_line(2) == getpid();
  }));
}

TEST_CASE("a trace that cannot be written says so, and allocations go on") {
  const scratch_file file;
  const live_pool pool;
  const live_adaptor trace(desc_of(VELO_ADAPTOR_TRACE, allocator_of(pool), file.path));
  const velo_allocator a = trace.allocator();
  calls().write_error = ENOSPC;
  void* block = take(a, 100);
  CHECK(block != nullptr);
  give(a, block, 100);
  const velo_status flushed = velo_adaptor_flush(trace.handle);
  calls().write_error = 0;
  CHECK(flushed == VELO_ERR_IO);
  CHECK(last_record().cause == "No space left on device");
}

TEST_CASE("a trace takes the place of an ordinary file alone, and fills no other link of it") {
  const scratch_file file;
  const live_pool pool;
  const velo_allocator below = allocator_of(pool);
  const std::string other = file.folder.at("other"), pipe = file.folder.at("pipe");
  std::ofstream(file.path) << "older";
  REQUIRE(chmod(file.path.c_str(), 0666) == 0);
  REQUIRE(link(file.path.c_str(), other.c_str()) == 0);
  {
    const live_adaptor trace(desc_of(VELO_ADAPTOR_TRACE, below, file.path));
    CHECK(lines_of(other) == std::vector<std::string>{"older"});
    CHECK(lines_of(file.path).size() == 1);
    struct stat facts {};
    REQUIRE(stat(file.path.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0600);
  }
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, file.folder.path(), std::string("/dev/null")}) {
    CAPTURE(path);
    const velo_adaptor_desc desc = desc_of(VELO_ADAPTOR_TRACE, below, path);
    velo_adaptor none = nullptr;
    CHECK_REFUSED(velo_adaptor_create(&desc, &none), VELO_ERR_IO, "desc.path");
    CHECK(last_record().expected == "an ordinary file, or none yet");
  }
}

TEST_CASE("a callback hears of every call, and of a failure until it has no help left") {
  struct host {
    std::vector<std::pair<velo_memory_event, std::uint64_t>> heard;
    std::set<void*> live;
    velo_allocator below{};
    void* spare = nullptr;
  } h;
  const live_pool pool(limited_pool(mib));
  h.below = allocator_of(pool);
  velo_adaptor_desc desc = desc_of(VELO_ADAPTOR_CALLBACK, h.below, "");
  desc.event_user = &h;
  desc.event = [](void* user, velo_memory_event event, void* memory, std::uint64_t bytes, void*) {
    auto& self = *static_cast<host*>(user);
    self.heard.emplace_back(event, bytes);
    if (event == VELO_MEMORY_ALLOCATED) self.live.insert(memory);
    if (event == VELO_MEMORY_FREED) self.live.erase(memory);
    if (event != VELO_MEMORY_FAILED || self.spare == nullptr) return 0;
    give(self.below, self.spare, mib);
    self.spare = nullptr;
    return 1;
  };
  const live_adaptor notified(desc);
  const velo_allocator a = notified.allocator();
  h.spare = take(h.below, mib);
  void* block = take(a, mib);  // after the host freed what it could spare
  REQUIRE(block != nullptr);
  CHECK(take(a, mib) == nullptr);
  give(a, block, mib);
  const std::vector<std::pair<velo_memory_event, std::uint64_t>> expected = {
      {VELO_MEMORY_FAILED, mib},
      {VELO_MEMORY_ALLOCATED, mib},
      {VELO_MEMORY_FAILED, mib},
      {VELO_MEMORY_FREED, mib}};
  CHECK(h.heard == expected);
  CHECK(h.live.empty());
}

TEST_CASE("an exception of the host is a failure below every adaptor, and loses no memory") {
  struct host {
    bool throws = false;
    velo_memory_event at = -1;  // the event that throws
    int heard = 0;
  } h;
  host_memory memory;
  memory.on_allocate = [&h] {
    if (h.throws) throw std::runtime_error("of the host");
  };
  memory.on_free = [&h] {
    if (h.throws) throw 7;
  };
  const velo_allocator below = memory.allocator();
  const scratch_file file;
  for (velo_adaptor_kind kind = VELO_ADAPTOR_LIMIT; kind <= VELO_ADAPTOR_CALLBACK; ++kind) {
    CAPTURE(kind);
    h = {};
    velo_adaptor_desc desc = desc_of(kind, below, file.path);
    desc.limit = mib;
    desc.event_user = &h;
    desc.event = [](void* user, velo_memory_event event, void*, std::uint64_t, void*) {
      auto& self = *static_cast<host*>(user);
      ++self.heard;
      if (event == self.at) throw std::runtime_error("of the event");
      return 0;
    };
    const live_adaptor through(desc);
    const velo_allocator a = through.allocator();
    const bool counts = kind == VELO_ADAPTOR_LIMIT || kind == VELO_ADAPTOR_STATISTICS;
    h.throws = true;
    CHECK(take(a, 1000) == nullptr);
    CHECK_REFUSED(last_record().code, VELO_ERR_FOREIGN, "upstream.allocate");
    CHECK(last_record().cause == "of the host");
    if (counts) CHECK(through.stats().failures == 1);
    h.throws = false;
    void* block = take(a, 1000);
    REQUIRE(block != nullptr);
    h.throws = true;
    give(a, block, 1000);
    CHECK(memory.blocks == 0);
    if (counts) CHECK(through.stats().bytes_live == 0);
    h.throws = false;
    if (kind != VELO_ADAPTOR_CALLBACK) continue;
    h.at = VELO_MEMORY_ALLOCATED;
    CHECK(take(a, 1000) == nullptr);
    CHECK_REFUSED(last_record().code, VELO_ERR_FOREIGN, "desc.event");
    CHECK(memory.blocks == 0);
    h.at = VELO_MEMORY_FREED;
    give(a, take(a, 1000), 1000);
    CHECK(memory.blocks == 0);
    h.at = VELO_MEMORY_FAILED, h.throws = true, h.heard = 0;
    CHECK(take(a, 1000) == nullptr);
    CHECK(h.heard == 1);
  }
}

TEST_CASE("what is no adaptor is named; after its end nothing goes through") {
  const live_pool pool;
  const velo_allocator below = allocator_of(pool);
  velo_adaptor none = nullptr;
  velo_allocator half = below;
  half.deallocate = nullptr;
  using adaptor = velo_adaptor_desc;
  check_refusals(
      desc_of(VELO_ADAPTOR_LIMIT, below, ""),
      [&](const adaptor& d) { return velo_adaptor_create(&d, &none); },
      {{[](adaptor& d) { d.upstream = nullptr; }, VELO_ERR_NULL, "desc.upstream"},
       {[&](adaptor& d) { d.upstream = &half; }, VELO_ERR_NULL, "desc.upstream.deallocate"},
       {[](adaptor& d) { d.kind = VELO_ADAPTOR_CALLBACK + 1; }, VELO_ERR_ARGUMENT, "desc.kind"},
       {[](adaptor& d) { d.kind = VELO_ADAPTOR_TRACE, d.path = nullptr; }, VELO_ERR_NULL,
        "desc.path"},
       {[](adaptor& d) { d.kind = VELO_ADAPTOR_TRACE, d.path = "/no/such/folder/file"; },
        VELO_ERR_IO, "desc.path"},
       {[](adaptor& d) { d.kind = VELO_ADAPTOR_CALLBACK, d.event = nullptr; }, VELO_ERR_NULL,
        "desc.event"}});
  CHECK(none == nullptr);
  velo_allocator gone = VELO_ALLOCATOR_INIT;
  {
    const scratch_file file;
    const live_adaptor trace(desc_of(VELO_ADAPTOR_TRACE, below, file.path));
    velo_adaptor_stats stats = VELO_ADAPTOR_STATS_INIT;
    CHECK(velo_adaptor_get_stats(trace.handle, &stats) == VELO_ERR_UNSUPPORTED);
    gone = trace.allocator();
  }
  CHECK(take(gone, 64) == nullptr);
}
