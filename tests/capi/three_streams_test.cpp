// A product, a reduce-scatter and a swap are under way at one time, each on a stream of its own,
// and give what they give one after the other, bit for bit.
//
// The host's threads carry the product's tasks, so the test decides how long the product is under
// way: it has begun before the other two are queued, and goes on only when both are done. Where any
// of them waited for another, the test would stand still instead (until its deadline, which fails
// it).
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/context.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"
#include "velo/velo.h"

using velo::testing::live_context;

namespace {

using clock = std::chrono::steady_clock;
constexpr std::int64_t size = 256, elements = size * size;
constexpr auto limit = std::chrono::seconds(60);

struct span {
  clock::time_point begin, end;
};

// The host's threads: a call that is held has begun, and goes on when it is let go.
struct gate {
  std::atomic<bool> holds{false}, begun{false}, open{false};
  span product;

  velo_parallel_for threads() {
    velo_parallel_for made = VELO_PARALLEL_FOR_INIT;
    made.threads = 2;
    made.user = this;
    made.run = [](void* user, std::int64_t tasks, void (*task)(void*, std::int64_t), void* of) {
      gate& mine = *static_cast<gate*>(user);
      const bool held = mine.holds.exchange(false);
      if (held) {
        mine.product.begin = clock::now();
        mine.begun = true;
        const auto until = clock::now() + limit;
        while (!mine.open && clock::now() < until)
          std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      for (std::int64_t i = 0; i < tasks; ++i) task(of, i);
      if (held) mine.product.end = clock::now();
    };
    return made;
  }
};

velo_context_desc with(const velo_parallel_for& threads) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.parallel_for = &threads;
  return desc;
}

std::vector<float> numbers(std::uint32_t seed) {
  std::vector<float> made(elements);
  velo::testing::cheap_random draw(seed);
  for (float& each : made) each = static_cast<float>(draw() >> 8) / (1 << 24) - 0.5f;
  return made;
}

velo_tensor view(std::vector<float>& of, std::int64_t (&shape)[2]) {
  return velo::testing::view_of(of.data(), velo::testing::f32, shape);
}

// The work of rank 0, on any streams, and the part of rank 1 in the reduce-scatter.
struct job {
  std::int64_t whole[2] = {size, size}, half[2] = {size / 2, size};
  std::vector<float> a = numbers(1), b = numbers(2), c = std::vector<float>(elements);
  std::vector<float> part = numbers(3), sum = std::vector<float>(elements / 2);
  std::vector<float> other = numbers(4), other_sum = std::vector<float>(elements / 2);
  std::vector<float> weights = numbers(5);

  velo_status multiply(velo_stream on) {
    const velo_tensor ta = view(a, whole), tb = view(b, whole), tc = view(c, whole);
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = &ta;
    args.b = &tb;
    args.c = &tc;
    return velo_matmul(on, &args);
  }
  velo_status scatter(velo_stream on, velo_group group) {
    const velo_tensor in = view(part, whole), out = view(sum, half);
    return velo_group_reduce_scatter(on, group, nullptr, &in, &out);
  }
  velo_status scatter_of_rank_1(velo_stream on, velo_group group) {
    const velo_tensor in = view(other, whole), out = view(other_sum, half);
    return velo_group_reduce_scatter(on, group, nullptr, &in, &out);
  }
};

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("a product, a reduce-scatter and a swap run at one time on three streams") {
  gate first;
  const velo_parallel_for threads = first.threads();
  const live_context contexts[2] = {live_context(with(threads)), live_context()};
  const velo_context each[2] = {contexts[0], contexts[1]};
  velo_group groups[2] = {};
  REQUIRE(velo_group_create_local(each, 2, nullptr, groups) == VELO_OK);
  velo_swap swap = nullptr;
  REQUIRE(velo_swap_create(contexts[0], nullptr, &swap) == VELO_OK);

  // One after the other, on one stream a rank; the swapped weights leave.
  job serial, at_once;
  std::thread other([&] { serial.scatter_of_rank_1(contexts[1].inline_stream(), groups[1]); });
  const velo_stream stream = contexts[0].inline_stream();
  const velo_status multiplied = serial.multiply(stream),
                    summed = serial.scatter(stream, groups[0]);
  other.join();
  REQUIRE((multiplied == VELO_OK && summed == VELO_OK));
  std::uint64_t object = 0;
  REQUIRE(velo_swap_add(swap, at_once.weights.data(), elements * sizeof(float), VELO_SWAP_WARM,
                        &object) == VELO_OK);
  REQUIRE(velo_swap_out(swap, object, stream, nullptr) == VELO_OK);
  REQUIRE(velo_swap_wait(swap, object, stream) == VELO_OK);
  std::fill(at_once.weights.begin(), at_once.weights.end(), 0.0f);

  // The product first; the others while it is under way.
  velo_stream streams[3];
  velo_event done[2];
  for (velo_stream& s : streams) s = contexts[0].new_stream();
  for (velo_event& e : done) e = contexts[0].new_event();
  first.holds = true;
  REQUIRE(at_once.multiply(streams[0]) == VELO_OK);
  const auto until = clock::now() + limit;
  while (!first.begun && clock::now() < until)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  REQUIRE(first.begun);
  span scattered, swapped;
  scattered.begin = clock::now();
  REQUIRE(at_once.scatter(streams[1], groups[0]) == VELO_OK);
  REQUIRE(velo_event_record(done[0], streams[1]) == VELO_OK);
  swapped.begin = clock::now();  // the reduce-scatter waits for rank 1, and is under way, too
  REQUIRE(velo_swap_in(swap, object, nullptr, streams[2], done[1]) == VELO_OK);
  CHECK(velo_event_synchronize(done[1], std::chrono::nanoseconds(limit).count()) == VELO_OK);
  swapped.end = clock::now();
  std::int32_t early = 1;
  CHECK(velo_event_query(done[0], &early) == VELO_OK);
  CHECK(early == 0);
  REQUIRE(at_once.scatter_of_rank_1(contexts[1].inline_stream(), groups[1]) == VELO_OK);
  CHECK(velo_event_synchronize(done[0], std::chrono::nanoseconds(limit).count()) == VELO_OK);
  scattered.end = clock::now();
  first.open = true;
  for (const velo_stream s : streams) CHECK(velo_stream_synchronize(s) == VELO_OK);

  // The swap lay within the reduce-scatter, and both within the product.
  CHECK((first.product.begin < scattered.begin && scattered.end < first.product.end));
  CHECK((scattered.begin <= swapped.begin && swapped.end <= scattered.end));
  CHECK(same(serial.c, at_once.c));
  CHECK(same(serial.sum, at_once.sum));
  CHECK(same(serial.other_sum, at_once.other_sum));
  CHECK(same(serial.weights, at_once.weights));

  velo_swap_destroy(swap);
  for (const velo_event e : done) velo_event_destroy(e);
  for (const velo_stream s : streams) velo_stream_destroy(s);
  for (const velo_group g : groups) velo_group_destroy(g);
}
