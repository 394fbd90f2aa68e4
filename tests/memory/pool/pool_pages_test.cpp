// Huge pages where memory is used densely, and small ones where a byte is touched here and there.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/memory/pool/pools.hpp"
#include "tests/memory/pool/resident.hpp"
#include "tests/random.hpp"

using namespace velo::testing;

namespace {

// Bytes of huge pages in this process.
std::uint64_t huge_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;)
    if (word == "AnonHugePages:" && file >> word) return std::stoull(word) * kib;
  return 0;
}

// Whether a process that asks for huge pages gets them.
bool has_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  std::getline(file, modes);
  return modes.find("[always]") != std::string::npos ||
         modes.find("[madvise]") != std::string::npos;
}

}  // namespace

TEST_CASE("a byte touched in each large block costs no huge page") {
  const live_pool pool;
  constexpr std::uint64_t count = 40, turns = 5;
  random_source random(1);
  const std::uint64_t before = resident_bytes();
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    std::vector<std::pair<char*, std::uint64_t>> blocks;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t bytes = 3 * mib + random() % (8 * mib);
      blocks.emplace_back(pool.take(bytes), bytes);
      blocks.back().first[0] = 1;
    }
    for (const auto& [memory, bytes] : blocks) pool.give(memory, bytes);
  }
  CHECK(resident_bytes() < before + turns * count * 64 * kib);
}

namespace {

// Six blocks written as a whole, after some of which one byte is written, get huge pages.
void check_huge_pages(int sparse) {
  if (!has_huge_pages()) return;
  const live_pool pool;
  constexpr std::uint64_t bytes = 16 * mib;
  std::vector<char*> blocks;
  const std::uint64_t before = huge_bytes();
  for (int i = 0; i < sparse + 6; ++i) {
    blocks.push_back(pool.take(bytes));
    std::memset(blocks.back(), 1, i < sparse ? 1 : bytes);
  }
  CHECK(huge_bytes() >= before + 3 * bytes);
  for (char* memory : blocks) pool.give(memory, bytes);
}

}  // namespace

TEST_CASE("a pool whose blocks are written as a whole gets huge pages") {
  check_huge_pages(0);
}

TEST_CASE("a pool that was used sparsely and then densely gets huge pages") {
  check_huge_pages(4);
}

// Linux makes a huge page of small ones some time after they were touched (khugepaged); the call
// makes it do so now.
TEST_CASE("a huge page that Linux made over a hole of a pool goes with the last block in it") {
  constexpr int collapse = 25;  // MADV_COLLAPSE
  const live_pool pool;
  constexpr std::uint64_t large = 4 * mib, small = 64 * kib;
  for (const bool hole_first : {true, false}) {
    char* const first = pool.take(hole_first ? large : small);
    char* const second = pool.take(hole_first ? small : large);
    char* const kept = hole_first ? second : first;
    std::memset(first, 1, 1), std::memset(kept, 1, small);
    pool.give(hole_first ? first : second, large);
    REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
    char* const page = kept - reinterpret_cast<std::uintptr_t>(kept) % (2 * mib);
    if (madvise(page, 2 * mib, collapse) != 0) {
      WARN("not tested: this Linux makes no huge page when asked to");
      return;
    }
    CHECK(resident_bytes(pool) == 2 * mib);  // reserved: 64 KiB
    pool.give(kept, small);
    REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
    CHECK(pool.stats().bytes_reserved == 0);
    CHECK(resident_bytes(pool) == 0);
  }
}
