// A heap's own rules after every step of random allocation, free, growth and trim: blocks cover the
// range, no two free or uncommitted neighbors, reserved is what is not uncommitted, contents stay.
#include "memory/pool/heap/heap.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "tests/memory/system.hpp"
#include "tests/random.hpp"

using namespace velo::memory;
using velo::testing::calls;
using velo::testing::random_source;

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
const auto ignored = [](std::uint64_t, std::uint64_t) {};

void check(const heap& h) {
  std::uint64_t at = 0, reserved = 0, free = 0;
  const block* before = nullptr;
  for (const block* b = h.first(); b != nullptr; before = b, b = b->after) {
    REQUIRE(b->start == at);
    REQUIRE(b->before == before);
    REQUIRE(b->size > 0);
    REQUIRE(b->size % unit == 0);
    const bool alike = before != nullptr && before->state.load() == b->state.load();
    if (!b->is(block_state::in_use)) REQUIRE_FALSE(alike);
    if (b->is(block_state::uncommitted)) REQUIRE(b->size % h.range().granule() == 0);
    if (!b->is(block_state::uncommitted)) reserved += b->size;
    if (b->is(block_state::free)) free += b->size;
    at = b->end();
  }
  REQUIRE(at == h.range().size());
  REQUIRE(reserved == h.reserved());
  REQUIRE(free == h.free_bytes());
}

block* taken(heap& h, std::uint64_t size, std::uint64_t alignment) {
  block* b = h.take(size, alignment);
  if (b == nullptr) b = h.grow(h.plan_growth(size, alignment), size);
  return b;
}

void exercise(velo_pool_kind kind, unsigned seed, int steps) {
  random_source random(seed);
  heap h(kind, 0, 256 * mib);
  std::vector<block*> live;
  for (int step = 0; step < steps; ++step) {
    const auto choice = random.below(16);
    if (choice < 8) {
      const std::uint64_t size =
          (random() % (std::uint64_t{1} << (6 + random.below(14))) / unit + 1) * unit;
      const std::uint64_t alignment = unit << random.below(8);
      block* b = taken(h, size, alignment);
      REQUIRE(b != nullptr);
      REQUIRE(b->size == size);
      char* memory = h.show(*b, size);
      REQUIRE(reinterpret_cast<std::uintptr_t>(memory) % alignment == 0);
      REQUIRE(h.find(memory) == b);
      block* quickly = nullptr;
      REQUIRE((h.find_quickly(memory, size, quickly) && quickly == b));
      for (const std::uint64_t stated : {unit, fine})  // another size: that block, or none
        if (h.find_quickly(memory, stated, quickly)) REQUIRE(quickly == b);
      REQUIRE(h.find(memory + 8) == nullptr);
      if (b->zero) REQUIRE((memory[0] == 0 && memory[size - 1] == 0));
      std::memset(memory, static_cast<int>(b->start / unit), size);
      live.push_back(b);
    } else if (choice < 15 && !live.empty()) {
      const std::size_t i = random.below(live.size());
      block* b = live[i];
      const char* memory = h.memory_of(*b);
      REQUIRE(h.find(memory) == b);  // trims let tables of other blocks go alone
      const auto wanted = static_cast<char>(b->start / unit);
      REQUIRE(memory[0] == wanted);
      REQUIRE(memory[b->size - 1] == wanted);
      live[i] = live.back();
      live.pop_back();
      h.give(*b);
    } else {
      const std::uint64_t before = h.reserved();
      const std::uint64_t let_go = h.trim(random.below(mib), nullptr, ignored);
      REQUIRE(h.reserved() == before - let_go);
    }
    check(h);
  }
  for (block* b : live) h.give(*b);
  check(h);
  REQUIRE(h.trim(~std::uint64_t{0} / 2, nullptr, ignored) > 0);
  REQUIRE(h.reserved() == 0);
}

}  // namespace

TEST_CASE("the rules hold after every step, for each kind of memory") {
  exercise(VELO_POOL_ORDINARY, 1, 4000);
  exercise(VELO_POOL_HUGE, 2, 1500);
  exercise(VELO_POOL_SHARED, 3, 2000);
  exercise(VELO_POOL_LOCKED, 4, 1500);
}

TEST_CASE("growth makes use of the free block before the uncommitted one") {
  heap h(VELO_POOL_ORDINARY, 0, 64 * mib);
  block* kept = taken(h, mib, unit);
  block* last = taken(h, 8 * mib, unit);
  h.give(*last);
  const heap::growth planned = h.plan_growth(10 * mib, unit);
  CHECK(planned.bytes() == 2 * mib);
  block* larger = h.grow(planned, 10 * mib);
  REQUIRE(larger != nullptr);
  CHECK(larger->start == kept->end());
  CHECK(h.reserved() == 11 * mib);
}

TEST_CASE("a trim spares the block that growth is to make use of") {
  heap h(VELO_POOL_ORDINARY, 0, 64 * mib);
  block* first = taken(h, 4 * mib, unit);
  block* wall = taken(h, unit, unit);
  block* last = taken(h, 8 * mib, unit);
  h.give(*first);
  h.give(*last);
  const heap::growth planned = h.plan_growth(9 * mib, unit);
  REQUIRE(planned.joined != nullptr);
  CHECK(h.trim(mib, planned.joined, ignored) == mib);
  CHECK(h.plan_growth(9 * mib, unit).bytes() == planned.bytes());
  h.give(*wall);
}

TEST_CASE("growth takes a hole that fits, behind many smaller ones, before addresses never used") {
  heap h(VELO_POOL_ORDINARY, 0, 64 * mib);
  const std::uint64_t page = h.range().granule();
  std::vector<block*> walls, freed;
  const auto leave_a_hole = [&](std::uint64_t bytes) {
    freed.push_back(taken(h, bytes, page));
    walls.push_back(taken(h, page, page));
    return freed.back()->start;
  };
  for (int i = 0; i < 100; ++i) leave_a_hole(page);
  const std::uint64_t fits = leave_a_hole(mib);
  leave_a_hole(4 * mib);
  for (block* b : freed) h.give(*b);
  REQUIRE(h.trim(64 * mib, nullptr, ignored) == 5 * mib + 100 * page);
  CHECK(h.plan_growth(mib, unit).start == fits);
  for (block* b : walls) h.give(*b);
}

TEST_CASE("a block is found no more once a trim let its memory go, but its neighbors are") {
  constexpr std::uint64_t whole_pages = mib;  // of the tables, whatever a page is
  heap h(VELO_POOL_ORDINARY, 0, 64 * mib);
  block* before = taken(h, whole_pages, unit);
  block* gone = taken(h, whole_pages, unit);
  block* after = taken(h, whole_pages, unit);
  const char* shown_before = h.show(*before, unit);
  const char* shown = h.show(*gone, unit);
  const char* shown_after = h.show(*after, unit);
  h.give(*gone);
  REQUIRE(h.find(shown) != nullptr);
  REQUIRE(h.trim(whole_pages, nullptr, ignored) == whole_pages);
  CHECK(h.find(shown) == nullptr);
  CHECK(h.find(shown_before) == before);
  CHECK(h.find(shown_after) == after);
}

TEST_CASE("a range that is full has no growth left") {
  heap h(VELO_POOL_ORDINARY, 0, 64 * mib);
  block* all = taken(h, 64 * mib, unit);
  REQUIRE(all != nullptr);
  CHECK(h.plan_growth(unit, unit).into == nullptr);
  h.give(*all);
}

TEST_CASE("a range takes a part of addresses that are scarce, and no less than 64 MiB") {
  const auto size_of = [](velo_pool_kind kind, std::uint64_t wanted) {
    calls().remaining = 0;  // the first call is refused, half of the addresses are there
    const address_range range(kind, wanted);
    REQUIRE(calls().remaining == -1);
    return range.size();
  };
  for (const velo_pool_kind kind : {VELO_POOL_ORDINARY, VELO_POOL_LOCKED}) {
    CHECK(size_of(kind, 1024 * mib) == 128 * mib);
    CHECK(size_of(kind, 300 * mib) == 64 * mib);
    CHECK(size_of(kind, 100 * mib) == 64 * mib);
    CHECK(address_range(kind, 1024 * mib).size() == 1024 * mib);
  }
}
