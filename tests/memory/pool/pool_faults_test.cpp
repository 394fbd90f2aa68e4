// Each system call of a pool fails in turn: it gives a status, and the state stays whole.
// Locked memory without the right to lock, forks with a live pool, threads without a key.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/child_process.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/memory/system.hpp"
#include "tests/structs.hpp"
#include "tests/temporary_folder.hpp"

using namespace velo::testing;

namespace {

bool ends_with_its_last_thread = false;  // this process, a child

constexpr velo_device cpu = {VELO_DEVICE_CPU, 0};

int lowest_free_descriptor() {
  const int found = dup(STDERR_FILENO);
  close(found);
  return found;
}

}  // namespace

// Asked by the leak sanitizer, which would not find what stacks of threads hold that are not there.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return ends_with_its_last_thread ? 1 : 0;
}

TEST_CASE("every system call of a pool's life refused in turn: a status, and nothing lost") {
  { const live_pool warm; }
  const int descriptor = lowest_free_descriptor();
  int failures = 0;
  for (const velo_pool_kind kind : every_pool_kind) {
    for (const bool all_later : {false, true}) {
      for (int n = 0;; ++n) {
        const std::int64_t mapped = calls().mapped;
        calls().refused = false;
        calls().all_later = all_later;
        calls().remaining = n;
        const velo_pool_desc desc = pool_desc(kind);
        velo_pool pool = nullptr;
        const velo_status created = velo_pool_create(&desc, &pool);
        const velo_pool_request request = request_of(3 * mib);
        void* blocks[3] = {};
        for (void*& b : blocks) {
          if (created != VELO_OK) break;
          const velo_status status = velo_pool_allocate(pool, &request, &b);
          failures += status != VELO_OK;
          REQUIRE((status == VELO_OK || status == VELO_ERR_MEMORY));
          if (b != nullptr) std::memset(b, 1, request.bytes);
        }
        if (blocks[1] != nullptr)
          REQUIRE(velo_pool_free(pool, blocks[1], request.bytes, nullptr) == VELO_OK);
        if (created == VELO_OK) REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
        const bool refused = calls().refused;
        calls().remaining = -1;
        INFO("kind " << kind << ", call " << n);
        REQUIRE((created == VELO_OK || (refused && created == VELO_ERR_MEMORY && pool == nullptr)));
        failures += created != VELO_OK;
        if (created == VELO_OK) {  // it goes on as if nothing had been
          void* after = nullptr;
          REQUIRE(velo_pool_allocate(pool, &request, &after) == VELO_OK);
          std::memset(after, 2, request.bytes);
          REQUIRE(velo_pool_free(pool, after, request.bytes, nullptr) == VELO_OK);
          for (void* b : {blocks[0], blocks[2]}) {
            if (b == nullptr) continue;
            CHECK(static_cast<char*>(b)[request.bytes - 1] == 1);
            REQUIRE(velo_pool_free(pool, b, request.bytes, nullptr) == VELO_OK);
          }
          velo_pool_stats now = VELO_POOL_STATS_INIT;
          REQUIRE(velo_pool_get_stats(pool, &now) == VELO_OK);
          CHECK(now.bytes_live == 0);
          CHECK(now.bytes_reserved == now.bytes_cached);
        }
        velo_pool_destroy(pool);
        REQUIRE(calls().mapped == mapped);
        REQUIRE(lowest_free_descriptor() == descriptor);
        if (!refused) break;
        REQUIRE(n < 100);
      }
    }
  }
  CHECK(failures > 20);
}

TEST_CASE("where the system has no more, a request fails and the pressure callback is asked") {
  int asked = 0;
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.pressure_user = &asked;
  desc.pressure = [](void* user, std::uint64_t) {
    calls().remaining = -1;  // the host has made room
    return std::int32_t{++*static_cast<int*>(user) < 2};
  };
  const live_pool pool(desc);
  calls() = {};
  calls().only_commits = calls().all_later = true;
  calls().remaining = 0;
  char* block = pool.take(300 * mib);
  CHECK(asked == 1);
  calls().remaining = 0;
  void* none = nullptr;
  CHECK(pool.allocate(900 * mib, &none) == VELO_ERR_MEMORY);
  CHECK(last_record().cause == "out of memory");
  calls() = {};
  pool.give(block, 300 * mib);
}

TEST_CASE("memory the system does not take back stays the pool's, and counted") {
  for (const velo_pool_kind kind : {VELO_POOL_ORDINARY, VELO_POOL_SHARED}) {
    const live_pool pool(pool_desc(kind));
    char* block = pool.take(4 * mib);
    std::memset(block, 5, 4 * mib);
    pool.give(block, 4 * mib);
    calls().no_release = true;
    std::uint64_t released = 1;
    REQUIRE(velo_pool_trim(pool, 0, &released) == VELO_OK);
    CHECK(released == 0);
    CHECK(pool.stats().bytes_reserved == 4 * mib);
    calls().no_release = false;
    REQUIRE(velo_pool_trim(pool, 0, &released) == VELO_OK);
    CHECK(released == 4 * mib);
    velo_pool_request request = request_of(4 * mib);
    request.zero = 1;
    char* again = pool.take(request);
    CHECK(again[12345] == 0);
    pool.give(again, 4 * mib);
  }
}

TEST_CASE("memory that may not be locked is ordinary, and counted") {
  const auto without_rights = [](auto&& body) {
    return holds_in_child([&] {
      const rlimit none = {0, 0};
      if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) return false;
      if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) return false;
      const velo_pool_desc desc = pool_desc(VELO_POOL_LOCKED);
      velo_pool pool = nullptr;
      if (velo_pool_create(&desc, &pool) != VELO_OK) return false;
      const velo_pool_request request = request_of(mib);
      void* memory = nullptr;
      if (velo_pool_allocate(pool, &request, &memory) != VELO_OK) return false;
      std::memset(memory, 1, mib);
      velo_pool_stats now = VELO_POOL_STATS_INIT;
      if (velo_pool_get_stats(pool, &now) != VELO_OK) return false;
      return body(now) && velo_pool_free(pool, memory, mib, nullptr) == VELO_OK;
    });
  };
  CHECK(without_rights([](const velo_pool_stats& now) { return now.bytes_unlocked == mib; }));
  if (geteuid() == 0) {
    const live_pool pool(pool_desc(VELO_POOL_LOCKED));
    pool.give(pool.take(mib), mib);
    CHECK(pool.stats().bytes_unlocked == 0);
  }
}

TEST_CASE("memory that a control group has no room for is not locked, and counted") {
  const temporary_folder folder;
  folder.put("list", "0::/\n");
  folder.put("memory.max", std::to_string(32 * mib) + "\n");
  folder.put("memory.current", std::to_string(23 * mib) + "\n");
  calls().groups = folder.path();
  const live_pool pool(pool_desc(VELO_POOL_LOCKED));
  char* few = pool.take(2 * mib);
  CHECK(pool.stats().bytes_unlocked == 0);
  char* many = pool.take(100 * mib);  // Linux would end the process for it
  CHECK(pool.stats().bytes_unlocked >= 96 * mib);
  many[0] = many[100 * mib - 1] = few[0] = 1;
  calls().groups.clear();
  pool.give(few, 2 * mib);
  pool.give(many, 100 * mib);
}

TEST_CASE("a child of a fork is refused its parent's pool, keeps the memory, and has its own") {
  const live_pool pool;
  const velo_allocator allocator = allocator_of(pool);
  void *plain_take = nullptr, *plain_give = nullptr;
  REQUIRE(velo_pool_functions(pool, &plain_take, &plain_give) == VELO_OK);
  const auto take = reinterpret_cast<void* (*)(std::int64_t, std::int32_t, void*)>(plain_take);
  const auto give =
      reinterpret_cast<void (*)(void*, std::int64_t, std::int32_t, void*)>(plain_give);
  char* block = pool.take(100);
  block[0] = 'p';
  std::atomic<bool> stop{false};
  std::thread busy([&] {  // so that some forks find the lock held
    while (!stop) pool.give(pool.take(200 * mib), 200 * mib);
  });
  for (int i = 0; i < 30; ++i) {
    CHECK(holds_in_child([&] {
      alarm(20);
      void* memory = nullptr;
      const velo_pool_request request = request_of(1000);
      const velo_device cpu = {VELO_DEVICE_CPU, 0};
      if (velo_pool_allocate(pool, &request, &memory) != VELO_ERR_STATE) return false;
      if (velo_pool_free(pool, block, 100, nullptr) != VELO_ERR_STATE) return false;
      if (allocator.allocate(allocator.user, 64, 64, &cpu, nullptr) != nullptr) return false;
      allocator.deallocate(allocator.user, block, 100, &cpu, nullptr);
      if (take(64, 0, nullptr) != nullptr || take(300 << 20, 0, nullptr) != nullptr) return false;
      give(block, 100, 0, nullptr);
      if (velo::testing::last_record().code != VELO_ERR_STATE) return false;
      velo_pool_destroy(pool);
      if (block[0] != 'p') return false;
      block[0] = 'c';
      velo_pool own = nullptr;
      if (velo_pool_create(nullptr, &own) != VELO_OK) return false;
      if (velo_pool_allocate(own, &request, &memory) != VELO_OK) return false;
      if (velo_pool_free(own, memory, 1000, nullptr) != VELO_OK) return false;
      velo_pool_destroy(own);
      return true;
    }));
  }
  CHECK(block[0] == 'p');
  stop = true;
  busy.join();
  pool.give(block, 100);
}

#if !defined(__SANITIZE_THREAD__)  // which is damaged itself by a thread that ends so
TEST_CASE("a thread that used the pool may end in a child of its fork") {
  const live_pool pool;
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) pool.give(pool.take(200 * mib), 200 * mib);
  });
  struct {
    const live_pool& pool;
    pid_t child = -1;
  } shared{pool};
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    const auto forks = [](void* argument) -> void* {
      auto& with = *static_cast<decltype(shared)*>(argument);
      with.pool.give(with.pool.take(100), 100);
      const pid_t child = fork();
      if (child == 0) alarm(20);
      if (child == 0) ends_with_its_last_thread = true;
      if (child != 0) with.child = child;
      return nullptr;  // in the child the last thread: what a thread's end does is all that is left
    };
    REQUIRE(pthread_create(&thread, nullptr, forks, &shared) == 0);
    REQUIRE(pthread_join(thread, nullptr) == 0);
    int status = 0;
    REQUIRE(waitpid(shared.child, &status, 0) == shared.child);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  stop = true;
  busy.join();
}
#endif

TEST_CASE("without a key for threads every call goes to the heap, and all is as before") {
  calls().no_keys = true;
  const live_pool pool;
  calls().no_keys = false;
  char* a = pool.take(1000);
  char* b = pool.take(5 * mib);
  pool.give(a, 1000);
  CHECK(velo_pool_free(pool, a, 1000, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(pool.take(1000) == a);
  pool.give(a, 1000);
  pool.give(b, 5 * mib);
  CHECK(pool.stats().allocations == 3);
  CHECK(pool.stats().bytes_live == 0);
  CHECK(pool.stats().bytes_peak == 5 * mib + 1024);
}

TEST_CASE("two pools at once know their own blocks alone") {
  const live_pool one, two;
  std::vector<char*> of_one, of_two;
  for (int i = 0; i < 50; ++i) {
    of_one.push_back(one.take(1000));
    of_two.push_back(two.take(1000));
  }
  for (int i = 0; i < 50; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(velo_pool_free(one, of_two[at], 1000, nullptr) == VELO_ERR_ARGUMENT);
    CHECK(velo_pool_free(two, of_one[at], 1000, nullptr) == VELO_ERR_ARGUMENT);
    one.give(of_one[at], 1000);
    two.give(of_two[at], 1000);
  }
}

TEST_CASE("a pool destroyed with blocks in use keeps addresses for these alone") {
  constexpr std::uint64_t bytes = 100000;
  const std::int64_t before = calls().mapped;
  struct leak {
    velo_allocator from = VELO_ALLOCATOR_INIT;
    char* memory = nullptr;
  };
  std::vector<leak> leaks(100);
  for (leak& l : leaks) {
    velo_pool pool = nullptr;
    REQUIRE(velo_pool_create(nullptr, &pool) == VELO_OK);
    REQUIRE(velo_pool_allocator(pool, &l.from) == VELO_OK);
    l.memory = static_cast<char*>(l.from.allocate(l.from.user, bytes, 64, &cpu, nullptr));
    REQUIRE(l.memory != nullptr);
    std::memset(l.memory, 7, bytes);
    velo_pool_destroy(pool);
  }
  CHECK(calls().mapped - before < 100 * 2 * static_cast<std::int64_t>(mib));
  for (const leak& l : leaks) {
    CHECK(std::count(l.memory, l.memory + bytes, 7) == bytes);
    l.from.deallocate(l.from.user, l.memory, bytes, &cpu, nullptr);
  }
  CHECK(calls().mapped - before <= 4096);  // of the table of handles
}

TEST_CASE("what others have put between the blocks of a destroyed pool stays theirs") {
  constexpr std::uint64_t hole = 128 * mib, bytes = 5000;
  for (const velo_pool_kind kind : every_pool_kind) {
    const std::int64_t before = calls().mapped;
    const velo_pool_desc desc = pool_desc(kind);
    velo_pool pool = nullptr;
    REQUIRE(velo_pool_create(&desc, &pool) == VELO_OK);
    const velo_allocator from = allocator_of(pool);
    const auto take = [&](std::uint64_t size) {
      return static_cast<char*>(from.allocate(from.user, size, 64, &cpu, nullptr));
    };
    char *first = take(bytes), *between = take(hole), *last = take(bytes);
    REQUIRE(last - first >= static_cast<std::ptrdiff_t>(hole));
    std::memset(first, 1, bytes);
    std::memset(last, 2, bytes);
    from.deallocate(from.user, between, hole, &cpu, nullptr);
    velo_pool_destroy(pool);
    CHECK(calls().mapped - before < 32 * static_cast<std::int64_t>(mib));
    char* at = between + hole / 2;
    at -= reinterpret_cast<std::uintptr_t>(at) % (2 * mib);
    REQUIRE(mmap(at, mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                 -1, 0) == at);
    std::memset(at, 3, mib);
    from.deallocate(from.user, at, mib, &cpu, nullptr);  // refused
    CHECK(std::count(first, first + bytes, 1) == bytes);
    from.deallocate(from.user, first, bytes, &cpu, nullptr);
    CHECK(std::count(last, last + bytes, 2) == bytes);
    from.deallocate(from.user, last, bytes, &cpu, nullptr);
    CHECK(std::count(at, at + mib, 3) == mib);
    munmap(at, mib);
    CHECK(calls().mapped == before);
  }
}

TEST_CASE("where no addresses are left a pool says what takes them") {
  calls().remaining = 0;
  calls().all_later = true;
  velo_pool pool = nullptr;
  const velo_status status = velo_pool_create(nullptr, &pool);
  calls() = {};
  REQUIRE(status == VELO_ERR_MEMORY);
  const call_record record = last_record();
  CHECK(record.expected == "67108864 bytes of addresses in one piece");
  CHECK(record.got == "none left to this process");
  CHECK(record.cause.find("four times the machine's memory") != std::string::npos);
}
