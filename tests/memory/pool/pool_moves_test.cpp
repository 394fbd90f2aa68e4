// Scattered free pages that serve one large block: moved where the system can, alone or with their
// mappings, let go and brought in anew where it cannot; neighbors keep their contents, limits hold,
// and mappings stay few.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/memory/pool/pools.hpp"
#include "tests/memory/system.hpp"
#include "tests/random.hpp"
#include "tests/structs.hpp"

using namespace velo::testing;

namespace {

constexpr std::uint64_t part = 2 * mib;

// A full pool of which every second block is freed.
struct holes {
  explicit holes(const live_pool& of, std::uint64_t count) : pool(of) {
    for (std::uint64_t i = 0; i < count; ++i) {
      blocks.push_back(pool.take(part));
      std::memset(blocks.back(), static_cast<int>(i), part);  // densely, so that pages are huge
    }
    for (std::uint64_t i = 0; i < count; i += 2) pool.give(blocks[i], part);
  }
  ~holes() {
    for (std::uint64_t i = 1; i < blocks.size(); i += 2) pool.give(blocks[i], part);
  }
  bool are_whole() const {
    for (std::uint64_t i = 1; i < blocks.size(); i += 2)
      if (blocks[i][0] != static_cast<char>(i) || blocks[i][part - 1] != static_cast<char>(i))
        return false;
    return true;
  }
  const live_pool& pool;
  std::vector<char*> blocks;
};

std::uint64_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// Whether this system moves pages without their mappings.
bool moves_pages_alone() {
  const auto file = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | 1, 0, 0, 0, 0, 0));
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = std::uint64_t{1} << 16;
  const bool does = file >= 0 && ioctl(file, UFFDIO_API, &api) == 0;
  if (file >= 0) close(file);
  return does;
}

bool is_zero(const char* memory, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; ++i)
    if (memory[i] != 0) return false;
  return true;
}

}  // namespace

TEST_CASE("scattered huge pages become one block, and their neighbors keep their contents") {
  constexpr std::uint64_t count = 64;
  enum way { alone, with_mappings, busy, not_at_all };
  for (const velo_pool_kind kind : {VELO_POOL_ORDINARY, VELO_POOL_HUGE}) {
    for (const way by : {alone, with_mappings, busy, not_at_all}) {
      INFO("kind " << kind << ", way " << by);
      const live_pool pool(pool_desc(kind, count * part));
      const holes around(pool, count);
      const bool can = moves_pages_alone();
      calls().moves = calls().moves_alone = 0;
      calls().no_moves = by == not_at_all;
      calls().no_mover = by == with_mappings;
      calls().busy_pages = by == busy;
      const std::uint64_t pages = count / 2 / 10 * 9, whole = pages * part;
      char* one = pool.take(whole);
      calls().no_moves = calls().no_mover = calls().busy_pages = false;
      CHECK(calls().moves_alone == (can && by == alone ? static_cast<int>(pages) : 0));
      CHECK((calls().moves > 0) == ((!can || by != alone) && by != not_at_all));
      CHECK(pool.stats().bytes_reserved <= count * part);
      std::memset(one, 0x11, whole);
      CHECK(around.are_whole());
      pool.give(one, whole);
      CHECK(pool.take(whole) == one);  // without the system
      CHECK(one[whole - 1] == 0x11);
      pool.give(one, whole);
    }
  }
}

TEST_CASE("small pages that are free, some of them never touched, become one block too") {
  constexpr std::uint64_t count = 64;
  const live_pool pool(pool_desc(VELO_POOL_ORDINARY, count * part));
  char* all = pool.take(count * part);
  REQUIRE(madvise(all, count * part, MADV_NOHUGEPAGE) == 0);
  pool.give(all, count * part);
  const holes around(pool, count);
  std::vector<char*> touched(count / 4);  // of these every page
  for (char*& b : touched) std::memset(b = pool.take(part), 1, part);
  for (char* b : touched) pool.give(b, part);
  const std::uint64_t whole = count / 2 * part;
  char* one = pool.take(whole);
  std::memset(one, 0x11, whole);
  CHECK(around.are_whole());
  CHECK(pool.stats().bytes_reserved <= count * part);
  pool.give(one, whole);
}

TEST_CASE("pages that were moved are no zeros, and places they left are") {
  constexpr std::uint64_t count = 32;
  const live_pool pool(pool_desc(VELO_POOL_HUGE, count * part));
  const holes around(pool, count);
  velo_pool_request request = request_of(count / 2 * part);
  request.zero = 1;
  calls().moves = calls().moves_alone = 0;
  void* one = pool.take(request);
  CHECK(calls().moves + calls().moves_alone > 0);
  CHECK(is_zero(static_cast<char*>(one), request.bytes));
  REQUIRE(velo_pool_set_limit(pool, 2 * count * part) == VELO_OK);
  request.bytes = part;
  std::vector<void*> again(count);
  for (void*& b : again) {
    REQUIRE(velo_pool_allocate(pool, &request, &b) == VELO_OK);
    CHECK(is_zero(static_cast<char*>(b), part));
  }
  for (void* b : again) pool.give(b, part);
  pool.give(one, count / 2 * part);
  CHECK(around.are_whole());
}

TEST_CASE("where free pages are too few for the limit, a request fails and the pool goes on") {
  constexpr std::uint64_t count = 32, whole = (count / 2 - 1) * part;
  const live_pool pool(pool_desc(VELO_POOL_HUGE, count * part));
  const holes around(pool, count);
  char* speck = pool.take(kib);  // takes a page: what is left would do in bytes, but not in pages
  void* none = nullptr;
  CHECK(pool.allocate(whole + 1, &none) == VELO_ERR_MEMORY);
  CHECK(none == nullptr);
  CHECK(pool.stats().bytes_reserved <= count * part);
  CHECK(around.are_whole());
  char* one = pool.take(whole);
  one[whole - 1] = 1;
  CHECK(pool.stats().bytes_reserved <= count * part);
  pool.give(one, whole);
  pool.give(speck, kib);
}

TEST_CASE("moving on and on leaves few mappings") {
  constexpr std::uint64_t count = 64;
  for (const bool no_mover : {false, true}) {
    const std::uint64_t before = mappings();
    const live_pool pool(pool_desc(VELO_POOL_HUGE, count * part));
    calls().moves = calls().moves_alone = 0;
    calls().no_mover = no_mover;
    for (int cycle = 0; cycle < 20; ++cycle) {
      const holes around(pool, count);
      char* one = pool.take(count / 2 * part);
      one[0] = one[count / 2 * part - 1] = 1;
      CHECK(around.are_whole());
      pool.give(one, count / 2 * part);
    }
    calls().no_mover = false;
    const bool alone = calls().moves_alone > 0;
    CHECK(alone == (moves_pages_alone() && !no_mover));
    CHECK((alone || calls().moves > 0));
    CHECK(mappings() < before + (alone ? 20 : 4 * count));
    REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
    CHECK(mappings() < before + 20);
  }
}

TEST_CASE("every call refused while pages are moved: a status, contents whole, nothing lost") {
  constexpr std::uint64_t count = 32;
  for (const auto& [all_later, no_mover] :
       {std::pair(false, false), std::pair(false, true), std::pair(true, false)}) {
    for (int n = 0;; ++n) {
      const std::int64_t mapped = calls().mapped;
      bool refused = false;
      {
        const live_pool pool(pool_desc(VELO_POOL_ORDINARY, count * part));
        const holes around(pool, count);
        calls().refused = false;
        calls().all_later = all_later;
        calls().no_mover = no_mover;
        calls().remaining = n;
        void* one = nullptr;
        const velo_status status = pool.allocate(count / 2 * part, &one);
        refused = calls().refused;
        const std::int64_t now = calls().mapped;
        calls() = {};
        calls().mapped = now;
        INFO("call " << n << ", all later " << all_later << ", no mover " << no_mover);
        CHECK((status == VELO_OK || (refused && status == VELO_ERR_MEMORY)));
        if (one != nullptr) {
          std::memset(one, 0x22, count / 2 * part);
          pool.give(one, count / 2 * part);
        }
        CHECK(around.are_whole());
        CHECK(pool.stats().bytes_reserved <= count * part);
        char* after = pool.take(count / 2 * part);
        std::memset(after, 0x33, count / 2 * part);
        CHECK(around.are_whole());
        pool.give(after, count / 2 * part);
      }
      REQUIRE(calls().mapped == mapped);
      if (!refused) break;
      REQUIRE(n < 100);
    }
  }
}

TEST_CASE("at its limit a pool gives whole pages as long as it has so many, wherever they are") {
  constexpr std::uint64_t page = 4096, limit = 24 * mib;
  for (const velo_pool_kind kind : {VELO_POOL_ORDINARY, VELO_POOL_SHARED}) {
    const live_pool pool(pool_desc(kind, limit));
    random_source random(kind + 5u);
    std::vector<std::pair<char*, std::uint64_t>> live;
    std::uint64_t bytes = 0;
    for (int step = 0; step < 4000; ++step) {
      const std::uint64_t size = (random() % (1u << random.below(11)) + 1) * page;
      while (bytes + size > limit) {
        const std::size_t i = random.below(live.size());
        REQUIRE(live[i].first[0] == static_cast<char>(live[i].second / page));
        pool.give(live[i].first, live[i].second);
        bytes -= live[i].second;
        live[i] = live.back();
        live.pop_back();
      }
      void* memory = nullptr;
      INFO("kind " << kind << ", step " << step << ": " << size << " beside " << bytes);
      REQUIRE(pool.allocate(size, &memory) == VELO_OK);
      live.emplace_back(static_cast<char*>(memory), size);
      live.back().first[0] = live.back().first[size - 1] = static_cast<char>(size / page);
      bytes += size;
    }
    CHECK(pool.stats().bytes_reserved <= limit);
    for (const auto& [memory, size] : live) pool.give(memory, size);
  }
}
