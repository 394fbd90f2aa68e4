// Swaps through their C entries: contents leave and return, in the order of streams.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/memory/swap/swaps.hpp"
#include "tests/refusals.hpp"
#include "tests/threads.hpp"

using namespace velo::testing;

namespace {

bool holds(const void* memory, std::uint64_t bytes, int value) {
  const auto* at = static_cast<const unsigned char*>(memory);
  for (std::uint64_t i = 0; i < bytes; ++i)
    if (at[i] != value) return false;
  return true;
}

}  // namespace

TEST_CASE("an object returns as it left, in every tier and of every size") {
  for (const tier_case& t : tier_cases()) {
    const swap_world w(t.desc);
    std::uint64_t moved = 0;
    for (const std::uint64_t bytes :
         {1ull, 63ull, 4095ull, 4096ull, 4097ull, 65536ull, 100000ull, 1048576ull, 2000001ull}) {
      INFO(t.name << ", " << bytes << " bytes");
      moved += bytes;
      std::vector<unsigned char> memory = pattern(bytes, 7);
      const std::vector<unsigned char> before = memory;
      const std::uint64_t id = w.add(memory.data(), bytes);
      CHECK(w.state(id) == VELO_SWAP_RESIDENT);
      w.out(id);
      CHECK(w.state(id) == VELO_SWAP_OUT);
      std::memset(memory.data(), 0, bytes);
      w.in(id);
      CHECK(w.state(id) == VELO_SWAP_RESIDENT);
      CHECK(memory == before);
      CHECK(w.stats().bytes_out == moved);
      CHECK(w.stats().bytes_in == moved);
      CHECK(w.stats().bytes_held == 0);
      CHECK(w.stats().bytes_stored == 0);
      CHECK(w.stats().bytes_peak == bytes);
    }
  }
}

TEST_CASE("an object returns to other memory, aligned or not, and leaves from it again") {
  for (const tier_case& t : tier_cases()) {
    INFO(t.name);
    const swap_world w(t.desc);
    const std::uint64_t bytes = 3 * 4096 + 17;
    std::vector<unsigned char> first = pattern(bytes + 3, 1), second(bytes + 5), third(bytes);
    const std::vector<unsigned char> before(first.begin() + 3, first.end());
    const std::uint64_t id = w.add(first.data() + 3, bytes);
    w.out(id);
    w.in(id, second.data() + 5);
    CHECK(w.object(id).memory == second.data() + 5);
    CHECK(std::memcmp(second.data() + 5, before.data(), bytes) == 0);
    w.out(id);
    w.in(id, third.data());
    CHECK(third == before);
  }
}

TEST_CASE("copies of one object take effect in the order of their calls, none waited for") {
  for (const tier_case& t : tier_cases()) {
    INFO(t.name);
    const swap_world w(t.desc);
    const std::uint64_t bytes = 300000;
    std::vector<unsigned char> a = pattern(bytes, 3), b(bytes), c(bytes);
    const std::vector<unsigned char> before = a;
    const std::uint64_t id = w.add(a.data(), bytes);
    REQUIRE(velo_swap_out(w.swap, id, w.stream, nullptr) == VELO_OK);
    REQUIRE(velo_swap_in(w.swap, id, b.data(), w.stream, nullptr) == VELO_OK);
    REQUIRE(velo_swap_out(w.swap, id, w.stream, nullptr) == VELO_OK);
    REQUIRE(velo_swap_in(w.swap, id, c.data(), w.stream, nullptr) == VELO_OK);
    const velo_swap_state state = w.state(id);
    CHECK((state == VELO_SWAP_RETURNING || state == VELO_SWAP_RESIDENT));
    REQUIRE(velo_swap_wait(w.swap, id, w.stream) == VELO_OK);
    CHECK(b == before);
    CHECK(c == before);
    CHECK(w.stats().bytes_out == 2 * bytes);
  }
}

TEST_CASE("a copy begins behind the work of its stream, and a stream waits for a copy") {
  const swap_world w(host_desc());
  held_queue queue(w.context);
  const std::uint64_t bytes = 4 << 20;
  std::vector<unsigned char> memory(bytes, 1), seen(bytes);
  const std::uint64_t id = w.add(memory.data(), bytes);
  velo_event gone = nullptr;
  REQUIRE(velo_event_create(w.context, &gone) == VELO_OK);
  queue.then([&] { std::memset(memory.data(), 9, bytes); });
  REQUIRE(velo_swap_out(w.swap, id, queue, gone) == VELO_OK);
  std::int32_t done = 1;
  REQUIRE(velo_event_query(gone, &done) == VELO_OK);
  CHECK(done == 0);
  CHECK(w.state(id) == VELO_SWAP_LEAVING);
  queue.open();
  REQUIRE(velo_event_synchronize(gone, -1) == VELO_OK);
  velo_event_destroy(gone);
  std::memset(memory.data(), 0, bytes);

  REQUIRE(velo_swap_in(w.swap, id, nullptr, queue, nullptr) == VELO_OK);
  REQUIRE(velo_swap_wait(w.swap, id, queue) == VELO_OK);
  queue.then([&] { seen = memory; });
  REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
  CHECK(holds(seen.data(), bytes, 9));
}

TEST_CASE("an object without memory of the caller's gives the pool's back while it is out") {
  const live_pool pool;
  const swap_world w(host_desc(pool));
  const std::uint64_t bytes = 1 << 20;
  const std::uint64_t id = w.add(nullptr, bytes);
  CHECK(pool.stats().bytes_live >= bytes);
  std::memset(w.object(id).memory, 5, bytes);
  w.out(id);
  CHECK(w.object(id).memory == nullptr);
  CHECK(pool.stats().bytes_live == 0);
  REQUIRE(velo_swap_in(w.swap, id, nullptr, w.stream, nullptr) == VELO_OK);
  CHECK(pool.stats().bytes_live >= bytes);
  REQUIRE(velo_swap_wait(w.swap, id, w.stream) == VELO_OK);
  CHECK(holds(w.object(id).memory, bytes, 5));
  REQUIRE(velo_swap_drop(w.swap, id, nullptr) == VELO_OK);
  CHECK(pool.stats().bytes_live == 0);
}

TEST_CASE("a host tier keeps what is out in the pool it was given") {
  const live_pool pool;
  velo_swap_desc desc = host_desc();
  desc.pool = pool;
  const swap_world w(desc);
  std::vector<unsigned char> memory(1 << 20, 4);
  const std::uint64_t id = w.add(memory.data(), memory.size());
  w.out(id);
  CHECK(pool.stats().bytes_live >= memory.size());
  CHECK(w.stats().bytes_stored == memory.size());
  REQUIRE(velo_swap_drop(w.swap, id, nullptr) == VELO_OK);
  CHECK(pool.stats().bytes_live == 0);
  CHECK(w.stats().objects == 0);
  CHECK(w.stats().bytes_held == 0);
}

TEST_CASE("what is dropped on its way goes when it has arrived") {
  const live_pool pool;
  for (const bool returns : {false, true}) {
    const swap_world w(host_desc(pool));
    held_queue queue(w.context);
    const std::uint64_t id = w.add(nullptr, 1 << 20);
    REQUIRE(velo_swap_out(w.swap, id, queue, nullptr) == VELO_OK);
    if (returns) REQUIRE(velo_swap_in(w.swap, id, nullptr, queue, nullptr) == VELO_OK);
    REQUIRE(velo_swap_drop(w.swap, id, queue) == VELO_OK);
    CHECK(velo_swap_wait(w.swap, id, queue) == VELO_ERR_ARGUMENT);
    CHECK(pool.stats().bytes_live > 0);
    queue.open();
    CHECK(w.gives_all_back(pool));
  }
}

TEST_CASE("memory of the caller's is his again when a drop returns") {
  for (tier_case& t : tier_cases()) {
    INFO(t.name);
    const swap_world w(t.desc);
    held_queue queue(w.context);
    const std::vector<unsigned char> contents = pattern(300000, 7);
    std::vector<unsigned char> memory = contents;
    const std::uint64_t id = w.add(memory.data(), memory.size());
    w.out(id);
    std::memset(memory.data(), 0, memory.size());
    REQUIRE(velo_swap_in(w.swap, id, nullptr, queue, nullptr) == VELO_OK);
    std::atomic<bool> dropped{false};
    velo_status status = VELO_ERR_INTERNAL;
    std::thread dropping([&] {
      status = velo_swap_drop(w.swap, id, nullptr);
      dropped = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK_FALSE(dropped);  // the copy has not even begun
    queue.open();
    dropping.join();
    CHECK(status == VELO_OK);
    CHECK(memory == contents);
    CHECK(w.stats().objects == 0);
  }
}

TEST_CASE("or to the later work of the queue that it was dropped in, also after a failed copy") {
  velo_swap_desc desc = host_desc();
  for (const bool fails : {false, true}) {
    desc.limit = fails ? 1000 : 0;
    const swap_world w(desc);
    held_queue queue(w.context);
    std::vector<unsigned char> memory = pattern(300000, 8);
    const std::uint64_t id = w.add(memory.data(), memory.size());
    REQUIRE(velo_swap_out(w.swap, id, queue, nullptr) == VELO_OK);
    REQUIRE(velo_swap_drop(w.swap, id, queue) == VELO_OK);
    velo_swap_stats later = VELO_SWAP_STATS_INIT;
    queue.then([&] { velo_swap_get_stats(w.swap, &later); });
    queue.open();
    REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
    CHECK(later.bytes_out == (fails ? 0 : memory.size()));
    CHECK(later.failures == (fails ? 1 : 0));
  }
}

TEST_CASE("a swap ends with objects in every state and leaves nothing behind") {
  const live_pool pool;
  for (tier_case& t : tier_cases()) {
    t.desc.memory = pool;
    {
      const swap_world w(t.desc);
      const std::uint64_t resident = w.add(nullptr, 100000);
      const std::uint64_t out = w.add(nullptr, 200000);
      const std::uint64_t on_its_way = w.add(nullptr, 300000);
      std::memset(w.object(out).memory, 1, 200000);
      std::memset(w.object(on_its_way).memory, 1, 300000);
      w.out(out);
      REQUIRE(velo_swap_out(w.swap, on_its_way, w.stream, nullptr) == VELO_OK);
      REQUIRE(velo_swap_in(w.swap, on_its_way, nullptr, w.stream, nullptr) == VELO_OK);
      CHECK(w.state(resident) == VELO_SWAP_RESIDENT);
    }
    CHECK(pool.stats().bytes_live == 0);
  }
}

TEST_CASE("calls that make no sense are refused and change nothing") {
  const swap_world w(host_desc());
  std::vector<unsigned char> memory(1000, 1);
  std::uint64_t id = 77;
  CHECK(velo_swap_add(w.swap, memory.data(), 0, VELO_SWAP_WARM, &id) == VELO_ERR_ARGUMENT);
  CHECK(velo_swap_add(w.swap, memory.data(), 1000, 2, &id) == VELO_ERR_ARGUMENT);
  CHECK_REFUSED(velo_swap_add(w.swap, nullptr, 1000, VELO_SWAP_WARM, &id), VELO_ERR_STATE,
                "memory");
  CHECK(id == 77);
  id = w.add(memory.data(), 1000);
  CHECK(velo_swap_in(w.swap, id, nullptr, w.stream, nullptr) == VELO_ERR_STATE);
  CHECK_REFUSED(velo_swap_out(w.swap, id + 1, w.stream, nullptr), VELO_ERR_ARGUMENT, "object");
  w.out(id);
  CHECK(velo_swap_out(w.swap, id, w.stream, nullptr) == VELO_ERR_STATE);
  CHECK(velo_swap_assign(w.swap, id, -1) == VELO_ERR_ARGUMENT);
  REQUIRE(velo_swap_drop(w.swap, id, nullptr) == VELO_OK);
  CHECK(velo_swap_drop(w.swap, id, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(w.stats().bytes_held == 0);
}

TEST_CASE("a description that makes no sense is refused by its field") {
  const live_context context;
  velo_swap none = nullptr;
  const auto create = [&](const velo_swap_desc& d) { return velo_swap_create(context, &d, &none); };
  check_refusals(
      host_desc(), create,
      {{[](auto& d) { d.tier = VELO_SWAP_DISK + 1; }, VELO_ERR_ARGUMENT, "desc.tier"},
       {[](auto& d) { d.tier = VELO_SWAP_DISK; }, VELO_ERR_NULL, "desc.directories"},
       {[](auto& d) { d.depth = 0; }, VELO_ERR_ARGUMENT, "desc.depth"},
       {[](auto& d) { d.depth = 65; }, VELO_ERR_ARGUMENT, "desc.depth"},
       {[](auto& d) { d.block = 2048; }, VELO_ERR_ARGUMENT, "desc.block"},
       {[](auto& d) { d.block = 12288; }, VELO_ERR_ARGUMENT, "desc.block"},
       {[](auto& d) { d.checksums = 2; }, VELO_ERR_ARGUMENT, "desc.checksums"},
       {[](auto& d) { d.direct = -1; }, VELO_ERR_ARGUMENT, "desc.direct"},
       {[](auto& d) { d.engine = VELO_SWAP_ENGINE_COPY; }, VELO_ERR_ARGUMENT, "desc.engine"}});
  for (const char* list : {"", ":", "/tmp:", ":/tmp", "/tmp::/tmp"})
    CHECK_REFUSED(create(disk_desc(list)), VELO_ERR_ARGUMENT, "desc.directories");
  CHECK(none == nullptr);
}

TEST_CASE("no more is out than the limit, and the object that is too much stays") {
  velo_swap_desc desc = host_desc();
  desc.limit = 150000;
  const swap_world w(desc);
  std::vector<unsigned char> memory(200000, 6);
  const std::uint64_t first = w.add(memory.data(), 100000);
  const std::uint64_t second = w.add(memory.data() + 100000, 100000);
  w.out(first);
  CHECK_REFUSED(w.try_out(second), VELO_ERR_MEMORY, "object 2");
  CHECK(w.state(second) == VELO_SWAP_RESIDENT);
  CHECK(w.stats().failures == 1);
  REQUIRE(velo_swap_drop(w.swap, first, nullptr) == VELO_OK);
  w.out(second);  // asked for once more, now that there is room
  CHECK(w.state(second) == VELO_SWAP_OUT);
}

TEST_CASE("an object waited for before its drop leaves its room to the next at once") {
  const live_pool pool;
  for (tier_case& t : tier_cases()) {
    INFO(t.name);
    t.desc.memory = pool;
    t.desc.limit = 1 << 20;
    const swap_world w(t.desc);
    for (int i = 0; i < 8; ++i) {
      const std::uint64_t next = w.add(nullptr, 700000);
      w.out(next);
      REQUIRE(velo_swap_drop(w.swap, next, nullptr) == VELO_OK);
    }
    CHECK(w.stats().failures == 0);
  }
}

TEST_CASE("threads use a swap at once, each its own objects") {
  const live_pool pool;
  for (tier_case& t : tier_cases()) {
    INFO(t.name);
    t.desc.memory = pool;
    const swap_world w(t.desc);
    constexpr int threads = 3, rounds = 15;
    std::atomic<int> wrong{0};
    on_threads(threads, [&](int number) {
      const std::uint64_t bytes = 20000 + 7777 * static_cast<std::uint64_t>(number);
      for (int round = 0; round < rounds; ++round) {
        const int value = (number * 31 + round) & 255;
        std::uint64_t id = 0;
        velo_swap_object info = VELO_SWAP_OBJECT_INIT;
        velo_swap_stats stats = VELO_SWAP_STATS_INIT;
        bool good = velo_swap_add(w.swap, nullptr, bytes, VELO_SWAP_COLD, &id) == VELO_OK &&
                    velo_swap_get_object(w.swap, id, &info) == VELO_OK;
        if (good) std::memset(info.memory, value, bytes);
        good = good && velo_swap_out(w.swap, id, w.stream, nullptr) == VELO_OK &&
               velo_swap_in(w.swap, id, nullptr, w.stream, nullptr) == VELO_OK &&
               velo_swap_get_stats(w.swap, &stats) == VELO_OK &&
               (round % 3 == 0 || velo_swap_wait(w.swap, id, w.stream) == VELO_OK) &&
               velo_swap_get_object(w.swap, id, &info) == VELO_OK;
        if (good && round % 3 != 0) good = holds(info.memory, bytes, value);
        good = good && velo_swap_drop(w.swap, id, nullptr) == VELO_OK;
        if (!good) ++wrong;
      }
    });
    CHECK(wrong == 0);
    CHECK(w.gives_all_back(pool));
    CHECK(w.stats().objects == 0);
    CHECK(w.stats().bytes_stored == 0);
  }
}

TEST_CASE("a queue that is full refuses copies, waits and drops, and changes nothing") {
  const live_pool pool;
  const swap_world w(host_desc(pool), R"({"queue": 6})");
  const std::uint64_t bytes = 1000;
  held_queue queue(w.context);
  const std::uint64_t id = w.add(nullptr, bytes);
  std::memset(w.object(id).memory, 4, bytes);
  velo_status last = VELO_OK;
  for (int i = 0; i < 100 && last == VELO_OK; ++i)  // each puts one marker into the stream
    last = i % 2 == 0 ? velo_swap_out(w.swap, id, queue, nullptr)
                      : velo_swap_in(w.swap, id, nullptr, queue, nullptr);
  CHECK(last == VELO_ERR_FULL);
  const velo_swap_object before = w.object(id);
  const std::uint64_t live = pool.stats().bytes_live;
  CHECK(velo_swap_wait(w.swap, id, queue) == VELO_ERR_FULL);
  CHECK(velo_swap_drop(w.swap, id, queue) == VELO_ERR_FULL);
  CHECK(w.object(id).state == before.state);
  CHECK(w.object(id).memory == before.memory);
  CHECK(pool.stats().bytes_live == live);
  queue.open();
  REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
  REQUIRE(velo_swap_wait(w.swap, id, w.stream) == VELO_OK);
  if (w.state(id) == VELO_SWAP_OUT) w.in(id);
  CHECK(holds(w.object(id).memory, bytes, 4));
}

TEST_CASE("one of the threads that drop an object at once does") {
  const live_pool pool;
  const swap_world w(host_desc(pool));
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t id = w.add(nullptr, 5000);
    std::atomic<int> dropped{0}, refused{0}, waiting{2};
    const auto drop = [&] {
      --waiting;
      while (waiting != 0) std::this_thread::yield();
      const velo_status status = velo_swap_drop(w.swap, id, nullptr);
      if (status == VELO_OK) ++dropped;
      if (status == VELO_ERR_ARGUMENT) ++refused;
    };
    std::thread other(drop);
    drop();
    other.join();
    REQUIRE(dropped == 1);
    REQUIRE(refused == 1);
  }
  CHECK(pool.stats().bytes_live == 0);
}
