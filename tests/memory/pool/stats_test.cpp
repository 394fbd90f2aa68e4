// A pool's counters in each of its modes, held against what its blocks say in a snapshot, and what
// it holds for each stream.
#include <vector>

#include "tests/memory/held_stream.hpp"
#include "tests/memory/history/snapshots.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/memory/system.hpp"
#include "tests/random.hpp"
#include "tests/structs.hpp"

using namespace velo::testing;

namespace {

struct held {
  void* memory;
  std::uint64_t bytes;
  velo_purpose purpose;
};

// The sums over a snapshot's blocks.
struct sums {
  std::uint64_t live = 0, requested = 0, pending = 0, reserved = 0;
};

sums sums_of(const parsed& all) {
  sums s;
  for (const json_t* segment : all.list("segments")) {
    s.reserved += number(segment, "total_size");
    std::uint64_t covered = 0;
    for (const json_t* block : items(json_object_get(segment, "blocks"))) {
      CHECK(number(block, "address") == number(segment, "address") + covered);
      covered += number(block, "size");
      const std::string state = string(block, "state");
      if (state == "active_allocated") {
        s.live += number(block, "size");
        s.requested += number(block, "requested_size");
      }
      if (state == "active_pending_free") s.pending += number(block, "size");
    }
    CHECK(covered == number(segment, "total_size"));
  }
  return s;
}

void compare(const live_pool& pool, const std::vector<held>& blocks) {
  const velo_pool_stats now = pool.stats();
  const sums seen = sums_of(parsed(pool));
  std::uint64_t asked = 0;
  for (const held& h : blocks) asked += h.bytes;
  CHECK(now.bytes_live - now.bytes_rounding == asked);
  CHECK(now.bytes_live == seen.live);
  CHECK(seen.requested == asked);
  CHECK(now.bytes_pending == seen.pending);
  CHECK(now.bytes_reserved == seen.reserved);
  CHECK(now.bytes_reserved == now.bytes_live + now.bytes_cached + now.bytes_pending);
  CHECK(now.bytes_peak >= now.bytes_live);
  CHECK(now.bytes_reserved_peak >= now.bytes_reserved);
  CHECK(now.bytes_largest_hole <= now.bytes_cached);
  CHECK(now.bytes_split <= now.bytes_cached);
  CHECK(now.allocations - now.frees == blocks.size());
  std::uint64_t by_purpose = 0;
  for (int p = 0; p < 8; ++p) {
    by_purpose += now.purpose_live[p];
    CHECK(now.purpose_peak[p] >= now.purpose_live[p]);
  }
  CHECK(by_purpose == now.bytes_live);
}

void exercise(const velo_pool_desc& desc) {
  const live_pool pool(desc);
  random_source32 random(7);
  std::vector<held> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (blocks.size() < 60 || (blocks.size() < 200 && random.one_in(2))) {
      velo_pool_request request = request_of(random() % (random.one_in(8) ? mib : 4096));
      request.purpose = static_cast<velo_purpose>(random.below(8));
      request.lifetime = random.one_in(4) ? VELO_LIFETIME_LONG : VELO_LIFETIME_DEFAULT;
      blocks.push_back({pool.take(request), request.bytes, request.purpose});
    } else {
      const std::size_t at = random.below(blocks.size());
      pool.give(blocks[at].memory, blocks[at].bytes);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (i % 500 == 499) REQUIRE(velo_pool_trim(pool, mib, nullptr) == VELO_OK);
    if (i % 250 == 0) compare(pool, blocks);
  }
  compare(pool, blocks);
  for (const held& h : blocks) pool.give(h.memory, h.bytes);
  compare(pool, {});
}

}  // namespace

TEST_CASE("counters agree with the blocks in every kind of pool") {
  for (const velo_pool_kind kind :
       {VELO_POOL_ORDINARY, VELO_POOL_HUGE, VELO_POOL_SHARED, VELO_POOL_LOCKED}) {
    CAPTURE(kind);
    exercise(pool_desc(kind));
  }
}

TEST_CASE("counters agree with the blocks in checked pools and where threads have no caches") {
  exercise(checked_pool());
  calls().no_keys = true;
  exercise(VELO_POOL_DESC_INIT);
  calls().no_keys = false;
}

TEST_CASE("the largest hole and the split bytes are those of the free blocks") {
  const live_pool pool(checked_pool());  // without caches, so that what is freed is in the heap
  std::vector<char*> row;
  for (int i = 0; i < 8; ++i) row.push_back(pool.take(mib));
  pool.give(row[1], mib);
  pool.give(row[4], mib);
  pool.give(row[5], mib);
  REQUIRE(velo_pool_trim(pool, ~std::uint64_t{0}, nullptr) == VELO_OK);  // out of the quarantine
  const velo_pool_stats now = pool.stats();
  CHECK(now.bytes_largest_hole > 2 * mib);
  CHECK(now.bytes_largest_hole < 2 * mib + 4096);
  CHECK(now.bytes_split >= 3 * mib);
  for (const int i : {0, 2, 3, 6, 7}) pool.give(row[static_cast<std::size_t>(i)], mib);
}

TEST_CASE("a stream's live and pending bytes are its own") {
  const live_pool pool;
  held_stream busy;
  const velo_stream other_stream = busy.context.new_stream();
  velo_stream at_once = nullptr;
  REQUIRE(velo_context_stream(busy.context, &at_once) == VELO_OK);
  char* mine = pool.take(mib, busy.handle);
  char* also = pool.take(3 * mib, busy.handle);
  char* other = pool.take(2 * mib, other_stream);
  char* host = pool.take(512 * kib);

  const auto of = [&](velo_stream stream) {
    velo_pool_stream_stats stats = VELO_POOL_STREAM_STATS_INIT;
    REQUIRE(velo_pool_get_stream_stats(pool, stream, &stats) == VELO_OK);
    return stats;
  };
  CHECK(of(busy.handle).bytes_live == 4 * mib);
  CHECK(of(busy.handle).blocks_live == 2);
  CHECK(of(other_stream).bytes_live == 2 * mib);
  CHECK(of(nullptr).bytes_live == 512 * kib);
  CHECK(of(at_once).bytes_live == 512 * kib);

  pool.give(mine, mib, busy.handle);
  CHECK(of(busy.handle).bytes_live == 3 * mib);
  CHECK(of(busy.handle).bytes_pending == mib);
  CHECK(of(other_stream).bytes_pending == 0);
  CHECK(of(nullptr).bytes_pending == 0);
  busy.release();
  REQUIRE(velo_pool_trim(pool, ~std::uint64_t{0}, nullptr) == VELO_OK);
  CHECK(of(busy.handle).bytes_pending == 0);
  pool.give(also, 3 * mib);
  pool.give(other, 2 * mib);
  pool.give(host, 512 * kib);

  velo_pool_stream_stats small = VELO_POOL_STREAM_STATS_INIT;
  small.struct_size = 8;
  CHECK(velo_pool_get_stream_stats(pool, nullptr, &small) == VELO_ERR_STRUCT);
}
