// Memory in the order of streams: freed behind queued work it is the stream's own at once, and
// nobody else's until the work is done, whatever becomes of the stream.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/context.hpp"
#include "tests/memory/held_stream.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/structs.hpp"

using namespace velo::testing;

TEST_CASE("freed on a stream: its own again at once, others' when the work is done") {
  for (const velo_lifetime lifetime : {VELO_LIFETIME_DEFAULT, VELO_LIFETIME_LONG}) {
    const live_pool pool;
    held_stream busy;
    char* block = pool.take(mib, busy.handle, lifetime);
    pool.give(block, mib, busy.handle);
    CHECK(pool.stats().bytes_pending == mib);
    CHECK(pool.stats().bytes_live == 0);
    CHECK(velo_pool_free(pool, block, mib, nullptr) == VELO_ERR_ARGUMENT);
    char* of_host = pool.take(mib, nullptr, lifetime);
    CHECK(of_host != block);
    char* again = pool.take(mib, busy.handle, lifetime);
    CHECK(again == block);
    CHECK(pool.stats().bytes_pending == 0);
    pool.give(again, mib, busy.handle);
    busy.release();
    pool.give(of_host, mib);
    std::uint64_t released = 0;
    REQUIRE(velo_pool_trim(pool, 0, &released) == VELO_OK);
    CHECK(pool.stats().bytes_reserved == 0);
  }
}

TEST_CASE("zeros are not written where the stream's work still is") {
  const live_pool pool;
  held_stream busy;
  char* block = pool.take(mib, busy.handle);
  block[0] = 7;
  pool.give(block, mib, busy.handle);
  velo_pool_request request = request_of(mib);
  request.stream = busy.handle;
  request.zero = 1;
  void* zeros = pool.take(request);
  CHECK(block[0] == 7);
  CHECK(static_cast<char*>(zeros)[0] == 0);
  busy.release();
  pool.give(zeros, mib);
}

TEST_CASE("a pending block serves only requests whose alignment its address has") {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  for (const velo_pool_kind kind : {VELO_POOL_ORDINARY, VELO_POOL_SHARED}) {
    desc.kind = kind;
    const live_pool pool(desc);
    held_stream busy;
    velo_pool_request request = request_of(2 * mib);
    request.stream = busy.handle;
    char* first = pool.take(request.bytes, busy.handle);  // at the start of the pool's addresses
    pool.give(first, request.bytes, busy.handle);
    request.alignment = 2 * mib;
    void* aligned = nullptr;
    REQUIRE(velo_pool_allocate(pool, &request, &aligned) == VELO_OK);
    CHECK(reinterpret_cast<std::uintptr_t>(aligned) % (2 * mib) == 0);
    pool.give(aligned, request.bytes, busy.handle);
    busy.release();
  }
}

TEST_CASE("the inline stream is the host's order") {
  const live_pool pool;
  const live_context context;
  char* block = pool.take(mib, context.inline_stream());
  pool.give(block, mib, context.inline_stream());
  CHECK(pool.stats().bytes_pending == 0);
  CHECK(pool.take(mib) == block);
  pool.give(block, mib);
}

TEST_CASE("many blocks in flight come back in order, reused ones among them") {
  const live_pool pool;
  held_stream busy;
  std::vector<char*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(pool.take(4096 * (1 + i % 7), busy.handle));
  for (int i = 0; i < 100; ++i)
    pool.give(blocks[static_cast<std::size_t>(i)], 4096 * (1 + i % 7), busy.handle);
  for (int i = 0; i < 50; ++i) {  // from the middle of the list
    char* b = pool.take(4096 * 4, busy.handle);
    pool.give(b, 4096 * 4, busy.handle);
  }
  CHECK(pool.stats().allocations == 150);
  busy.release();
  REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  CHECK(pool.stats().bytes_pending == 0);
  CHECK(pool.stats().bytes_reserved == 0);
}

TEST_CASE("at the limit a request waits for the stream that has the memory") {
  const live_pool pool(limited_pool(4 * mib));
  held_stream busy;
  pool.give(pool.take(4 * mib, busy.handle), 4 * mib, busy.handle);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    busy.open = true;
  });
  char* block = pool.take(2 * mib);
  later.join();
  pool.give(block, 2 * mib);
}

TEST_CASE("a stream that has failed or is gone holds nothing back") {
  const live_pool pool;
  {
    held_stream busy;
    char* before = pool.take(mib, busy.handle);
    pool.give(before, mib, busy.handle);
    queue_failure(busy.handle);
    busy.open = true;
    CHECK(velo_stream_synchronize(busy.handle) == VELO_ERR_IO);
    char* after = pool.take(mib, busy.handle);
    pool.give(after, mib, busy.handle);
    CHECK(velo_stream_synchronize(busy.handle) == VELO_ERR_IO);
    REQUIRE(velo_stream_clear(busy.handle) == VELO_OK);
    busy.open = false;
    busy.hold();
    pool.give(pool.take(mib, busy.handle), mib, busy.handle);
    busy.open = true;
  }
  REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  CHECK(pool.stats().bytes_pending == 0);
  CHECK(pool.stats().bytes_reserved == 0);
}

TEST_CASE("what a stream has passed, by its end too, is pending for nobody") {
  const live_pool pool;
  {
    held_stream busy;
    char* first = pool.take(mib, busy.handle);
    char* second = pool.take(mib, busy.handle);
    pool.give(first, mib, busy.handle);
    CHECK(pool.stats().bytes_pending == mib);
    busy.release();
    velo_pool_stream_stats of = VELO_POOL_STREAM_STATS_INIT;
    REQUIRE(velo_pool_get_stream_stats(pool, busy.handle, &of) == VELO_OK);
    CHECK(of.bytes_pending == 0);
    busy.open = false;
    busy.hold();
    pool.give(second, mib, busy.handle);
    CHECK(pool.stats().bytes_pending == mib);
  }
  CHECK(pool.stats().bytes_pending == 0);
  CHECK(pool.stats().bytes_cached == pool.stats().bytes_reserved);
}

TEST_CASE("where the stream's queue is full, nothing is freed and the caller hears it") {
  const live_pool pool;
  live_context context;
  REQUIRE(velo_config_set(context, "queue", "2") == VELO_OK);
  const velo_stream queue = context.new_stream();
  std::atomic<bool> open{false};
  hold(queue, open);
  hold(queue, open);
  char* block = pool.take(mib, queue);
  CHECK(velo_pool_free(pool, block, mib, queue) == VELO_ERR_FULL);
  CHECK(pool.stats().bytes_live == mib);
  open = true;
  REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
  pool.give(block, mib, queue);
}

TEST_CASE("a destroyed stream is refused by the name of the argument") {
  const live_pool pool;
  const live_context context;
  const velo_stream queue = context.new_stream();
  char* block = pool.take(64, queue);
  velo_stream_destroy(queue);
  void* none = nullptr;
  CHECK_REFUSED(pool.allocate(64, &none, queue), VELO_ERR_HANDLE, "request.stream");
  CHECK_REFUSED(velo_pool_free(pool, block, 64, queue), VELO_ERR_HANDLE, "stream");
  pool.give(block, 64);
}

TEST_CASE("a checked pool leaves memory alone until the stream's work is done") {
  const live_pool pool(checked_pool());
  held_stream busy;
  char* block = pool.take(100, busy.handle);
  block[0] = 7;
  pool.give(block, 100, busy.handle);
  CHECK(block[0] == 7);
  block[1] = 8;  // by the stream's work, which is still allowed to
  busy.release();
  REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  CHECK(velo_pool_check(pool) == VELO_OK);
}
