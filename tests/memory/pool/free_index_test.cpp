// The index of free blocks against a sorted set: after every step of a long random sequence it
// finds a block where there is one, hardly larger than it has to be, and knows the largest.
#include "memory/pool/heap/free_index.hpp"
#include "tests/random.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <utility>
#include <vector>

using velo::testing::random_source;

using namespace velo::memory;

namespace {

struct by_size {
  bool operator()(const block* a, const block* b) const {
    return std::pair(a->size, a->start) < std::pair(b->size, b->start);
  }
};

std::vector<std::unique_ptr<block>> make_blocks(std::uint64_t count) {
  std::vector<std::unique_ptr<block>> blocks;
  for (std::uint64_t i = 0; i < count; ++i) {
    blocks.push_back(std::make_unique<block>());
    blocks.back()->start = i * unit << 20;
  }
  return blocks;
}

}  // namespace

TEST_CASE(
    "a block is found where one is large enough, and is at most a 16th larger than the best") {
  random_source random(7);
  free_index index;
  std::set<block*, by_size> expected;
  const auto blocks = make_blocks(600);
  const auto any_size = [&] {
    const int power = static_cast<int>(random.below(38));
    return ((random() & ((std::uint64_t{1} << power) - 1)) % (random.one_in(3) ? 5 : ~0u) + 1) *
           unit;
  };
  std::uint64_t bytes = 0;
  for (int step = 0; step < 40000; ++step) {
    block& b = *blocks[random.below(blocks.size())];
    const bool present = expected.erase(&b) > 0;
    if (present) bytes -= b.size;
    if (present && random.one_in(2)) {
      index.remove(b);
    } else {
      if (present) index.remove(b);
      b.size = any_size();
      index.insert(b);
      expected.insert(&b);
      bytes += b.size;
    }
    block probe{};
    probe.size = any_size();
    const auto best = expected.lower_bound(&probe);
    const block* found = index.find(probe.size);
    REQUIRE((found == nullptr) == (best == expected.end()));
    if (found != nullptr) {
      REQUIRE(expected.count(const_cast<block*>(found)) == 1);
      REQUIRE(found->size >= probe.size);
      REQUIRE(found->size <= (*best)->size + (*best)->size / 16);
    }
    REQUIRE(index.bytes() == bytes);
    const block* largest = index.largest();
    REQUIRE((largest == nullptr) == expected.empty());
    if (largest == nullptr) continue;
    REQUIRE(largest->size == (*expected.rbegin())->size);
    REQUIRE(index.large()->size >= largest->size - largest->size / 32);
  }
}

TEST_CASE("the one block that is large enough is found behind any number of the same bin") {
  free_index index;
  const auto blocks = make_blocks(1000);
  constexpr std::uint64_t size = std::uint64_t{1} << 20;
  for (std::uint64_t i = 0; i < blocks.size(); ++i) {
    blocks[i]->size = i == 0 ? size + 2 * unit : size + unit;
    index.insert(*blocks[i]);
  }
  CHECK(index.find(size + 2 * unit) == blocks[0].get());
  CHECK(index.find(size + 3 * unit) == nullptr);
  CHECK(index.largest() == blocks[0].get());
  block huge{};
  huge.size = std::uint64_t{1} << 30;
  index.insert(huge);
  CHECK(index.find(size + 2 * unit) == blocks[0].get());
  CHECK(index.find(size + 3 * unit) == &huge);
  index.remove(huge);
  index.remove(*blocks[0]);
  CHECK(index.find(size + 2 * unit) == nullptr);
  CHECK(index.find(size) != nullptr);
}
