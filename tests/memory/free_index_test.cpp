// The index of free blocks against a sorted set: same best fit, same largest, after every step of a
// long random sequence, many equal sizes among them.
#include "memory/free_index.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace velo::memory;

namespace {

struct by_size {
  bool operator()(const block* a, const block* b) const {
    return std::pair(a->size, a->start) < std::pair(b->size, b->start);
  }
};

}  // namespace

TEST_CASE("best fit is the smallest that is large enough, of equals the first by address") {
  std::mt19937_64 random(7);
  free_index index;
  std::set<block*, by_size> expected;
  std::vector<std::unique_ptr<block>> blocks;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    blocks.push_back(std::make_unique<block>());
    blocks.back()->start = i * unit << 20;
  }
  const auto any_size = [&] {
    const int power = static_cast<int>(random() % 34);
    return ((random() & ((std::uint64_t{1} << power) - 1)) % (random() % 3 == 0 ? 5 : ~0u) + 1) *
           unit;
  };
  std::uint64_t bytes = 0;
  for (int step = 0; step < 40000; ++step) {
    block& b = *blocks[random() % blocks.size()];
    if (expected.erase(&b) > 0) {
      index.remove(b);
      bytes -= b.size;
    } else {
      b.size = any_size();
      index.insert(b);
      expected.insert(&b);
      bytes += b.size;
    }
    block probe{};
    probe.size = any_size();
    const auto fits = expected.lower_bound(&probe);
    REQUIRE(index.best_fit(probe.size) == (fits == expected.end() ? nullptr : *fits));
    REQUIRE(index.bytes() == bytes);
    const block* largest = index.largest();
    REQUIRE((largest == nullptr) == expected.empty());
    if (largest != nullptr) REQUIRE(largest == *expected.rbegin());
  }
}
