// The limit of a pool under refusals: random requests and frees against a pool that is too small
// for them, of every kind, plain and checked, short and long lives, with trims between, by one
// thread and by four, and below every adaptor. After each step live + pending <= reserved <= limit,
// counters agree with each other and with the blocks that the test holds, zeros are zero, and
// resident memory follows `reserved`.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "tests/memory/pool/pools.hpp"
#include "tests/memory/pool/resident.hpp"
#include "tests/random.hpp"
#include "tests/structs.hpp"
#include "tests/threads.hpp"

using namespace velo::testing;

namespace {

constexpr std::uint64_t limit = 32 * mib;
constexpr velo_device cpu{VELO_DEVICE_CPU, 0};

struct held_block {
  char* memory;
  std::uint64_t bytes;
};

// Sizes of a mixed workload: many small, few large, so that the pool is full of holes when it
// refuses.
std::uint64_t random_size(thread_random& random) {
  const auto up_to = [&](std::uint64_t most) { return 1 + random.below(most); };
  const std::uint64_t kind = random.below(100);
  if (kind < 60) return up_to(4 * kib);
  return kind < 85 ? up_to(256 * kib) : up_to(4 * mib);
}

void write_every_page(const held_block& held) {
  for (std::uint64_t at = 0; at < held.bytes; at += 4 * kib) held.memory[at] = 1;
  held.memory[held.bytes - 1] = 1;
}

bool is_zero(const held_block& block) {
  for (std::uint64_t i = 0; i < block.bytes; ++i)
    if (block.memory[i] != 0) return false;
  return true;
}

const std::string none;  // no relation is broken

// The first relation that counters of a limited pool break, or none. Catch's assertions are not for
// several threads.
std::string broken_relation(const velo_pool_stats& s) {
  const auto differ = [](const char* relation, std::uint64_t a, std::uint64_t b) {
    return std::string(relation) + ": " + std::to_string(a) + ", " + std::to_string(b);
  };
  if (s.bytes_reserved > limit) return differ("reserved <= limit", s.bytes_reserved, limit);
  if (s.bytes_reserved_peak > limit)
    return differ("reserved_peak <= limit", s.bytes_reserved_peak, limit);
  if (s.bytes_reserved > s.bytes_reserved_peak)
    return differ("reserved <= its peak", s.bytes_reserved, s.bytes_reserved_peak);
  if (s.bytes_live > s.bytes_peak) return differ("live <= its peak", s.bytes_live, s.bytes_peak);
  if (s.bytes_live + s.bytes_pending > s.bytes_reserved)
    return differ("live + pending <= reserved", s.bytes_live + s.bytes_pending, s.bytes_reserved);
  if (s.bytes_cached != s.bytes_reserved - s.bytes_live - s.bytes_pending)
    return differ("cached = reserved - live - pending", s.bytes_cached, s.bytes_reserved);
  if (s.bytes_rounding > s.bytes_live)
    return differ("rounding <= live", s.bytes_rounding, s.bytes_live);
  if (s.bytes_largest_hole > s.bytes_reserved)
    return differ("largest hole <= reserved", s.bytes_largest_hole, s.bytes_reserved);
  std::uint64_t of_purposes = 0;
  for (const std::uint64_t live : s.purpose_live) of_purposes += live;
  if (of_purposes != s.bytes_live)
    return differ("sum of purposes = live", of_purposes, s.bytes_live);
  return none;
}

struct workload {
  int requests = 3000;
  bool trims = false;
  std::int32_t zero = 0;
  velo_lifetime longest = VELO_LIFETIME_DEFAULT;
};

// Carries a workload out; the first broken relation, or none. step: called after every step with
// the bytes that the caller holds.
template <class Step>
std::string carry_out(const live_pool& pool, const workload& work, std::uint64_t seed,
                      Step&& step) {
  thread_random random(seed);
  std::vector<held_block> held;
  std::uint64_t bytes_held = 0;
  const auto free_one = [&](std::size_t at) {
    pool.give(held[at].memory, held[at].bytes);
    bytes_held -= held[at].bytes;
    held[at] = held.back();
    held.pop_back();
  };
  std::string broken;
  for (int i = 0; i < work.requests && broken.empty(); ++i) {
    if (!held.empty() && random.below(100) < 45) {
      free_one(random.below(held.size()));
    } else {
      velo_pool_request request = request_of(random_size(random));
      request.alignment = random.one_in(16) ? std::uint64_t{64} << random.below(16) : 64;
      request.purpose = static_cast<velo_purpose>(random.below(8));
      request.lifetime = static_cast<velo_lifetime>(random() % (work.longest + 1));
      request.zero = work.zero;
      void* memory = nullptr;
      if (velo_pool_allocate(pool, &request, &memory) == VELO_OK) {
        held.push_back({static_cast<char*>(memory), request.bytes});
        if (request.zero != 0 && !is_zero(held.back())) return "not zero";
        write_every_page(held.back());
        bytes_held += request.bytes;
      }
    }
    if (work.trims && random.one_in(50)) velo_pool_trim(pool, random.below(limit), nullptr);
    broken = step(bytes_held);
    if (!broken.empty()) broken += " after step " + std::to_string(i);
  }
  while (!held.empty()) free_one(held.size() - 1);
  return broken;
}

void ends_empty(const live_pool& pool) {
  REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  const velo_pool_stats end = pool.stats();
  CHECK(broken_relation(end) == none);
  CHECK(end.bytes_live == 0);
  CHECK(end.bytes_reserved == 0);
  CHECK(end.bytes_cached == 0);
}

}  // namespace

TEST_CASE("a pool stays within its limit after every refused request, whatever its kind") {
  const auto kind = GENERATE(as<velo_pool_kind>{}, VELO_POOL_ORDINARY, VELO_POOL_HUGE,
                             VELO_POOL_SHARED, VELO_POOL_LOCKED);
  const auto checked = GENERATE(false, true);
  const auto trims = GENERATE(false, true);
  const auto longest = GENERATE(as<velo_lifetime>{}, VELO_LIFETIME_DEFAULT, VELO_LIFETIME_LONG);
  for (const std::uint64_t seed : {1u, 2u}) {
    INFO("kind " << kind << ", checked " << checked << ", trims " << trims << ", lifetimes up to "
                 << longest << ", seed " << seed);
    const live_pool pool(pool_desc(kind, limit, checked));
    const workload work{1500, trims, static_cast<std::int32_t>(seed % 2), longest};
    const std::string broken = carry_out(pool, work, seed, [&](std::uint64_t held) {
      const velo_pool_stats now = pool.stats();
      if (now.bytes_live - now.bytes_rounding != held)
        return std::string("live is not what is held");
      return broken_relation(now);
    });
    REQUIRE(broken == none);
    CHECK(pool.stats().refused > 0);
    ends_empty(pool);
  }
}

// A pool that has turned over many times its limit: its tables cover the addresses it ever used.
TEST_CASE("resident memory stays within what a pool at its limit says it has reserved") {
  const auto kind = GENERATE(as<velo_pool_kind>{}, VELO_POOL_ORDINARY, VELO_POOL_HUGE,
                             VELO_POOL_SHARED, VELO_POOL_LOCKED);
  const auto trims = GENERATE(false, true);
  INFO("kind " << kind << ", trims " << trims);
  // The pool's tables and descriptions of blocks, and the test's own list.
#if defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t beside = 1024 * 1024 * mib;  // the shadow grows with every address used
#elif defined(__SANITIZE_ADDRESS__)
  constexpr std::uint64_t beside = 258 * mib;  // with the shadow
#else
  constexpr std::uint64_t beside = 2 * mib;
#endif
  const small_pages_alone here;
  const live_pool pool(pool_desc(kind, limit));
  const std::uint64_t before = resident_bytes();
  int steps = 0;
  std::uint64_t most = 0;
  const std::string broken = carry_out(pool, {20000, trims}, 4, [&](std::uint64_t) {
    if (++steps % 50 != 0) return none;
    const std::uint64_t resident = resident_bytes(pool), reserved = pool.stats().bytes_reserved;
    most = std::max(most, resident);
    return resident <= reserved
               ? none
               : "resident " + std::to_string(resident) + ", reserved " + std::to_string(reserved);
  });
  CHECK(broken == none);
  CHECK(most > limit / 2);
  ends_empty(pool);
  CHECK(resident_bytes(pool) == 0);
  CHECK(resident_bytes() < before + beside);
}

TEST_CASE("four threads together stay within the limit of their pool") {
  const auto kind = GENERATE(as<velo_pool_kind>{}, VELO_POOL_ORDINARY, VELO_POOL_SHARED);
  const auto checked = GENERATE(false, true);
  const live_pool pool(pool_desc(kind, limit, checked));
  std::mutex lock;
  std::string broken = none;
  on_threads(4, [&](std::uint64_t t) {
    // Other threads' counters move while they are read: only what one lock holds is exact.
    const std::string first = carry_out(pool, {1000, true}, 10 + t, [&](std::uint64_t) {
      velo_pool_stats now = VELO_POOL_STATS_INIT;
      velo_pool_get_stats(pool, &now);
      const bool holds = now.bytes_reserved <= limit && now.bytes_reserved_peak <= limit &&
                         now.bytes_cached <= now.bytes_reserved;
      return holds ? std::string() : "reserved " + std::to_string(now.bytes_reserved);
    });
    const std::lock_guard<std::mutex> guard(lock);
    if (broken == none) broken = first;
  });
  CHECK(broken == none);
  CHECK(pool.stats().refused > 0);
  ends_empty(pool);
}

TEST_CASE("a pool below adaptors stays within its limit, and their counters follow what is held") {
  const live_pool pool(limited_pool(limit));
  const velo_allocator below = allocator_of(pool);
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  desc.kind = VELO_ADAPTOR_LIMIT;
  desc.upstream = &below;
  desc.limit = limit - 4 * mib;
  velo_adaptor inner = nullptr, outer = nullptr;
  REQUIRE(velo_adaptor_create(&desc, &inner) == VELO_OK);
  velo_allocator middle = VELO_ALLOCATOR_INIT, top = VELO_ALLOCATOR_INIT;
  REQUIRE(velo_adaptor_allocator(inner, &middle) == VELO_OK);
  desc.kind = VELO_ADAPTOR_STATISTICS;
  desc.upstream = &middle;
  REQUIRE(velo_adaptor_create(&desc, &outer) == VELO_OK);
  REQUIRE(velo_adaptor_allocator(outer, &top) == VELO_OK);

  random_source random(20);
  std::vector<held_block> held;
  std::uint64_t bytes_held = 0, failures = 0;
  for (int i = 0; i < 5000; ++i) {
    if (!held.empty() && random.below(100) < 45) {
      const std::size_t at = random.below(held.size());
      top.deallocate(top.user, held[at].memory, held[at].bytes, &cpu, nullptr);
      bytes_held -= held[at].bytes;
      held[at] = held.back();
      held.pop_back();
    } else {
      const std::uint64_t bytes = random_size(random);
      void* memory = top.allocate(top.user, bytes, 64, &cpu, nullptr);
      failures += memory == nullptr ? 1 : 0;
      if (memory != nullptr) {
        held.push_back({static_cast<char*>(memory), bytes});
        write_every_page(held.back());
        bytes_held += bytes;
      }
    }
    for (const velo_adaptor adaptor : {inner, outer}) {
      velo_adaptor_stats now = VELO_ADAPTOR_STATS_INIT;
      REQUIRE(velo_adaptor_get_stats(adaptor, &now) == VELO_OK);
      REQUIRE(now.bytes_live == bytes_held);
      REQUIRE(now.bytes_live <= now.bytes_peak);
      REQUIRE(now.bytes_peak <= limit - 4 * mib);
      REQUIRE(now.allocations - now.frees == held.size());
      REQUIRE(now.failures == failures);
    }
    REQUIRE(broken_relation(pool.stats()) == none);
  }
  CHECK(failures > 0);
  for (const held_block& h : held) top.deallocate(top.user, h.memory, h.bytes, &cpu, nullptr);
  velo_adaptor_destroy(outer);
  velo_adaptor_destroy(inner);
  ends_empty(pool);
}
