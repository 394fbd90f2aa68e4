// The pool through its C entries: what a request gives, what counters say, limits, pressure, trims,
// growth over the cycles of a training loop under every combination of options, and refusals.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/context.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/random.hpp"
#include "tests/refusals.hpp"
#include "tests/structs.hpp"

using namespace velo::testing;

TEST_CASE("a block has its alignment and its bytes, and counters follow") {
  const live_pool pool;
  std::uint64_t requested = 0;
  std::vector<std::pair<void*, std::uint64_t>> blocks;
  for (const std::uint64_t bytes : {0ull, 1ull, 64ull, 65ull, 4097ull, 70000ull, 5ull << 20}) {
    for (std::uint64_t alignment = 64; alignment <= 2 * mib; alignment *= 8) {
      velo_pool_request request = request_of(bytes);
      request.alignment = alignment;
      request.purpose = VELO_PURPOSE_GRADIENT;
      request.zero = 1;
      char* const memory = pool.take(request);
      REQUIRE(reinterpret_cast<std::uintptr_t>(memory) % alignment == 0);
      for (std::uint64_t i = 0; i < bytes; ++i)
        if (memory[i] != 0) FAIL("byte " << i << " is not zero");
      std::memset(memory, 0x77, bytes);
      requested += bytes;
      blocks.emplace_back(memory, bytes);
    }
    const velo_pool_stats now = pool.stats();
    CHECK(now.bytes_live - now.bytes_rounding == requested);
    CHECK(now.purpose_live[VELO_PURPOSE_GRADIENT] == now.bytes_live);
    CHECK(now.bytes_reserved == now.bytes_live + now.bytes_cached);
  }
  for (const auto& [memory, bytes] : blocks) pool.give(memory, bytes);
  const velo_pool_stats end = pool.stats();
  CHECK(end.bytes_live == 0);
  CHECK(end.bytes_rounding == 0);
  CHECK(end.allocations == blocks.size());
  CHECK(end.frees == blocks.size());
  CHECK(end.purpose_peak[VELO_PURPOSE_GRADIENT] == end.bytes_peak);
  std::uint64_t released = 0;
  REQUIRE(velo_pool_trim(pool, 0, &released) == VELO_OK);
  CHECK(released == end.bytes_reserved);
  CHECK(pool.stats().bytes_reserved == 0);
  CHECK(pool.stats().bytes_let_go >= released);
}

TEST_CASE("what was freed last is taken again, zero where asked, and the peak is exact") {
  const live_pool pool;
  for (const std::uint64_t bytes : {100ull, 64ull << 10, 3ull << 20}) {
    char* first = pool.take(bytes);
    std::memset(first, 1, bytes);
    pool.give(first, bytes);
    char* again = pool.take(bytes);
    CHECK(again == first);
    pool.give(again, bytes);
    velo_pool_request request = request_of(bytes);
    request.zero = 1;
    char* zero = pool.take(request);
    CHECK(zero == first);
    CHECK(zero[bytes - 1] == 0);
    pool.give(zero, bytes);
  }
  CHECK(pool.stats().bytes_peak == 3 * mib);
  char* a = pool.take(2 * mib);
  char* b = pool.take(2 * mib);
  pool.give(a, 2 * mib);
  char* c = pool.take(mib);
  CHECK(pool.stats().bytes_peak == 4 * mib);
  pool.give(b, 2 * mib);
  pool.give(c, mib);
}

namespace {

// 66 MiB that stay, and cycles that keep 2 MiB each.
template <std::size_t Count>
void grow(bool checked, int cycles, const velo_pool_kind (&kinds)[Count]) {
  const std::uint64_t chunk = 91 * mib, half = chunk / 2, kept = 2 * mib;
  for (const velo_pool_kind kind : kinds) {
    for (const velo_lifetime lifetime : {VELO_LIFETIME_DEFAULT, VELO_LIFETIME_LONG}) {
      for (const std::uint64_t limit : {std::uint64_t{0}, 499 * mib}) {
        const live_pool pool(pool_desc(kind, limit, checked));
        char* canary = pool.take(66 * mib, nullptr, VELO_LIFETIME_LONG);
        std::memset(canary, 0x3c, 4096);
        std::memset(canary + 66 * mib - 4096, 0x3c, 4096);
        std::vector<char*> small;
        for (int cycle = 0; cycle < cycles; ++cycle) {
          char* a = pool.take(chunk);
          char* b = pool.take(half);
          small.push_back(pool.take(kept, nullptr, lifetime));
          a[0] = b[half - 1] = small.back()[0] = 1;
          pool.give(a, chunk);
          pool.give(b, half);
        }
        INFO("kind " << kind << ", lifetime " << lifetime << ", limit " << limit);
        CHECK(pool.stats().bytes_reserved_peak < 500 * mib);
        for (std::uint64_t i = 0; i < 4096; ++i)
          if (canary[i] != 0x3c || canary[66 * mib - 1 - i] != 0x3c) FAIL("the canary changed");
        for (char* s : small) pool.give(s, kept);
        pool.give(canary, 66 * mib);
        CHECK(pool.stats().bytes_live == 0);
      }
    }
  }
}

}  // namespace

TEST_CASE(
    "growth stays close to what is live, with every combination of options, and a canary stays") {
  grow(false, 100, every_pool_kind);
}

TEST_CASE("the same growth with every block looked after") {
  // All memory is filled: a cycle takes 100 ms.
  if (const char* cycles = std::getenv("VELO_POOL_CYCLES"))
    grow(true, std::atoi(cycles), every_pool_kind);
  else
    grow(true, 1, {VELO_POOL_ORDINARY});
}

TEST_CASE("a limit holds, says what there is, and lets free memory serve elsewhere") {
  const live_pool pool(limited_pool(8 * mib));
  std::vector<char*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(pool.take(mib));
  void* none = &none;
  CHECK(pool.allocate(1, &none) == VELO_ERR_MEMORY);
  CHECK(none == &none);
  CHECK(last_record().argument == "request.bytes");
  CHECK(last_record().cause == "the pool's limit is 8388608 bytes");
  for (int i = 0; i < 8; i += 2) pool.give(blocks[static_cast<std::size_t>(i)], mib);
  char* whole = pool.take(4 * mib);  // no hole is as large: their memory is
  whole[0] = whole[4 * mib - 1] = 1;
  CHECK(pool.stats().bytes_reserved <= 8 * mib);
  REQUIRE(velo_pool_set_limit(pool, 0) == VELO_OK);
  char* more = pool.take(4 * mib);
  CHECK(pool.stats().refused == 1);
  pool.give(more, 4 * mib);
  pool.give(whole, 4 * mib);
  for (int i = 1; i < 8; i += 2) pool.give(blocks[static_cast<std::size_t>(i)], mib);
}

TEST_CASE("a request beyond what letting everything go would give leaves free memory warm") {
  for (const velo_pool_kind kind : every_pool_kind) {
    const live_pool pool(pool_desc(kind, 16 * mib));
    char* blocks[8];
    for (char*& b : blocks) b = pool.take(2 * mib);
    for (int i = 0; i < 8; i += 2) pool.give(blocks[i], 2 * mib);
    INFO("kind " << kind);
    void* none = nullptr;
    CHECK(pool.allocate(8 * mib + 1, &none) == VELO_ERR_MEMORY);
    CHECK(pool.allocate(20 * mib, &none, nullptr, VELO_LIFETIME_LONG) == VELO_ERR_MEMORY);
    CHECK(pool.stats().bytes_cached == 8 * mib);
    CHECK(pool.stats().bytes_reserved == 16 * mib);
    pool.give(pool.take(8 * mib), 8 * mib);  // all of it
    for (int i = 1; i < 8; i += 2) pool.give(blocks[i], 2 * mib);
  }
}

TEST_CASE("a thousand scattered holes serve one block, and their neighbors keep their contents") {
  constexpr std::uint64_t part = 64 * kib, count = 2000;
  for (const velo_pool_kind kind : {VELO_POOL_ORDINARY, VELO_POOL_SHARED}) {
    const live_pool pool(pool_desc(kind, count * part));
    std::vector<char*> blocks;
    for (std::uint64_t i = 0; i < count; ++i) {
      blocks.push_back(pool.take(part));
      std::memset(blocks.back(), static_cast<int>(i), part);
    }
    for (std::uint64_t i = 0; i < count; i += 2) pool.give(blocks[i], part);
    const std::uint64_t whole = count / 2 * part / 10 * 9;
    char* one = pool.take(whole);
    std::memset(one, 0x11, whole);
    CHECK(pool.stats().bytes_reserved <= count * part);
    for (std::uint64_t i = 1; i < count; i += 2) {
      const auto mark = static_cast<char>(i);
      CHECK((blocks[i][0] == mark && blocks[i][part - 1] == mark));
      pool.give(blocks[i], part);
    }
    pool.give(one, whole);
  }
}

TEST_CASE("under pressure the host is asked until it has nothing left") {
  struct host {
    velo_pool pool = nullptr;
    std::vector<void*> spare;
    int asked = 0;
  } h;
  velo_pool_desc desc = limited_pool(4 * mib);
  desc.pressure_user = &h;
  desc.pressure = [](void* user, std::uint64_t bytes) {
    auto& self = *static_cast<host*>(user);
    ++self.asked;
    CHECK(bytes == 2 * mib);
    if (self.spare.empty()) return std::int32_t{0};
    CHECK(velo_pool_free(self.pool, self.spare.back(), mib, nullptr) == VELO_OK);
    self.spare.pop_back();
    return std::int32_t{1};
  };
  const live_pool pool(desc);
  h.pool = pool;
  for (int i = 0; i < 4; ++i) h.spare.push_back(pool.take(mib));
  char* got = pool.take(2 * mib);
  CHECK(h.asked == 2);
  void* none = nullptr;
  h.spare.clear();
  CHECK(pool.allocate(2 * mib, &none) == VELO_ERR_MEMORY);
  CHECK(h.asked == 3);
  pool.give(got, 2 * mib);
}

TEST_CASE("a pressure callback that throws is VELO_ERR_FOREIGN, and the pool goes on") {
  velo_pool_desc desc = limited_pool(mib);
  desc.pressure = [](void*, std::uint64_t) -> std::int32_t { throw 1; };
  const live_pool pool(desc);
  void* none = nullptr;
  CHECK(pool.allocate(2 * mib, &none) == VELO_ERR_FOREIGN);
  pool.give(pool.take(mib), mib);
}

TEST_CASE("answers under pressure that are none of the documented ones are VELO_ERR_FOREIGN") {
  static std::int32_t answer;
  for (const std::int32_t wrong : {2, 42, -1}) {
    answer = wrong;
    velo_pool_desc desc = limited_pool(mib);
    desc.pressure = [](void*, std::uint64_t) { return std::exchange(answer, 0); };
    const live_pool pool(desc);
    void* none = nullptr;
    CHECK_REFUSED(pool.allocate(2 * mib, &none), VELO_ERR_FOREIGN, "desc.pressure");
    CHECK(last_record().got == std::to_string(wrong));
    CHECK(none == nullptr);
    pool.give(pool.take(mib), mib);
  }
}

TEST_CASE("a host that promises memory and frees none is asked a few times") {
  int asked = 0;
  velo_pool_desc desc = limited_pool(mib);
  desc.pressure_user = &asked;
  desc.pressure = [](void* user, std::uint64_t) {
    return std::int32_t{++*static_cast<int*>(user) < 1000};
  };
  const live_pool pool(desc);
  void* none = nullptr;
  CHECK(pool.allocate(2 * mib, &none) == VELO_ERR_MEMORY);
  CHECK(asked == 16);
}

TEST_CASE("the record of a request without memory names the hole that the counters have") {
  const live_pool pool(limited_pool(2 * mib));
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  request.lifetime = VELO_LIFETIME_LONG;
  request.bytes = mib / 4;
  char *freed = pool.take(request), *kept = pool.take(request);
  pool.give(freed, mib / 4);
  void* none = nullptr;
  CHECK(pool.allocate(4 * mib, &none) == VELO_ERR_MEMORY);
  const std::uint64_t hole = pool.stats().bytes_largest_hole;
  REQUIRE(hole > 0);
  CHECK_THAT(last_record().got, Catch::EndsWith("largest hole " + std::to_string(hole)));
  pool.give(kept, mib / 4);
}

TEST_CASE("what is no request is named") {
  const live_pool pool;
  void* memory = nullptr;
  using request = velo_pool_request;
  check_refusals(
      request VELO_POOL_REQUEST_INIT,
      [&](const request& r) { return velo_pool_allocate(pool, &r, &memory); },
      {{[](request& r) { r.alignment = 96; }, VELO_ERR_ARGUMENT, "request.alignment"},
       {[](request& r) { r.alignment = 4 * mib; }, VELO_ERR_ARGUMENT, "request.alignment"},
       {[](request& r) { r.lifetime = 2; }, VELO_ERR_ARGUMENT, "request.lifetime"},
       {[](request& r) { r.purpose = -1; }, VELO_ERR_ARGUMENT, "request.purpose"},
       {[](request& r) { r.zero = 2; }, VELO_ERR_ARGUMENT, "request.zero"},
       {[](request& r) { r.bytes = ~std::uint64_t{0}; }, VELO_ERR_MEMORY, "request.bytes"},
       {[](request& r) { r.bytes = 1ull << 46; }, VELO_ERR_MEMORY, "request.bytes"}});
  CHECK(memory == nullptr);
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.kind = 4;
  velo_pool none = nullptr;
  CHECK_REFUSED(velo_pool_create(&desc, &none), VELO_ERR_ARGUMENT, "desc.kind");
}

TEST_CASE("a context's memory comes from a pool, and goes back to it") {
  const live_pool pool;
  const velo_allocator allocator = allocator_of(pool);
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.allocator = &allocator;
  {
    const live_context context(desc);
    const velo_pool_stats now = pool.stats();
    CHECK(now.bytes_live - now.bytes_rounding == context.stats().bytes_allocated);
    CHECK(now.purpose_live[VELO_PURPOSE_WORKSPACE] == now.bytes_live);
  }
  CHECK(pool.stats().bytes_live == 0);
}

TEST_CASE("memory of a shared pool lies in a file where the pool says") {
  const live_pool pool(pool_desc(VELO_POOL_SHARED));
  char* memory = pool.take(100000);
  std::memcpy(memory, "in the file", 12);
  std::int32_t file = -1;
  std::uint64_t offset = 0;
  REQUIRE(velo_pool_locate(pool, memory, &file, &offset) == VELO_OK);
  char read[12] = "";
  REQUIRE(pread(file, read, sizeof read, static_cast<off_t>(offset)) == 12);
  CHECK(std::string(read) == "in the file");
  CHECK(velo_pool_locate(pool, memory + 64, &file, &offset) == VELO_ERR_ARGUMENT);
  pool.give(memory, 100000);
  const live_pool ordinary;
  char* other = ordinary.take(64);
  CHECK(velo_pool_locate(ordinary, other, &file, &offset) == VELO_ERR_UNSUPPORTED);
  ordinary.give(other, 64);
}

TEST_CASE("random sizes: blocks never overlap and counters agree") {
  const live_pool pool;
  random_source random(3);
  struct one {
    char* memory;
    std::uint64_t bytes;
    char mark;
  };
  std::vector<one> live;
  std::uint64_t bytes = 0;
  for (int step = 0; step < 20000; ++step) {
    if (live.size() < 200 && random.one_in(2)) {
      const std::uint64_t size = random() % (std::uint64_t{1} << random.below(21)) + 1;
      one made{
          pool.take(size, nullptr, random.one_in(8) ? VELO_LIFETIME_LONG : VELO_LIFETIME_DEFAULT),
          size, static_cast<char>(step)};
      made.memory[0] = made.memory[size - 1] = made.mark;
      bytes += size;
      live.push_back(made);
    } else if (!live.empty()) {
      const std::size_t i = random.below(live.size());
      const one gone = live[i];
      REQUIRE(gone.memory[0] == gone.mark);
      REQUIRE(gone.memory[gone.bytes - 1] == gone.mark);
      pool.give(gone.memory, gone.bytes);
      bytes -= gone.bytes;
      live[i] = live.back();
      live.pop_back();
    }
    if (step % 500 != 0) continue;
    const velo_pool_stats now = pool.stats();
    REQUIRE(now.bytes_live - now.bytes_rounding == bytes);
    REQUIRE(now.bytes_reserved == now.bytes_live + now.bytes_cached);
    REQUIRE(now.bytes_split + now.bytes_largest_hole <= 2 * now.bytes_cached);
    REQUIRE(now.bytes_peak >= now.bytes_live);
  }
  for (const one& b : live) pool.give(b.memory, b.bytes);
  CHECK(pool.stats().bytes_live == 0);
}

TEST_CASE("a pool behind two plain functions, made for it and the same each time") {
  const live_pool one, two;
  using allocate_fn = void* (*)(std::int64_t, std::int32_t, void*);
  using deallocate_fn = void (*)(void*, std::int64_t, std::int32_t, void*);
  void *allocate = nullptr, *deallocate = nullptr, *other = nullptr, *unused = nullptr;
  REQUIRE(velo_pool_functions(one, &allocate, &deallocate) == VELO_OK);
  REQUIRE(velo_pool_functions(two, &other, &unused) == VELO_OK);
  CHECK(other != allocate);
  REQUIRE(velo_pool_functions(one, &other, &unused) == VELO_OK);
  CHECK(other == allocate);
  const auto take = reinterpret_cast<allocate_fn>(allocate);
  const auto give = reinterpret_cast<deallocate_fn>(deallocate);
  void* memory = take(3 << 20, 0, nullptr);
  REQUIRE(memory != nullptr);
  CHECK(one.stats().bytes_live == 3 * mib);
  CHECK(two.stats().bytes_live == 0);
  give(memory, 3 << 20, 0, nullptr);
  give(nullptr, 0, 0, nullptr);
  CHECK(one.stats().bytes_live == 0);
  CHECK(take(-1, 0, nullptr) == nullptr);
  CHECK(take(std::int64_t{1} << 60, 0, nullptr) == nullptr);
}
