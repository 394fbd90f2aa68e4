// Streams: order, turns, and the failure that is kept until it is cleared.
#include "core/stream/stream.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/core/fails.hpp"
#include "tests/core/streams.hpp"

using namespace velo::core;
using namespace velo::testing;

namespace {

// A gate that work waits at, so that a test decides what is still queued when.
struct gate {
  point open;
  void queue_on(stream& queue) {
    add(queue, demand::waits, [this](execution&) { open.wait(-1); });
  }
};

}  // namespace

TEST_CASE("queued work runs in order, one after another") {
  made_context made;
  stream& queue = made.queue();
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) add(queue, [&order, i](execution&) { order.push_back(i); });
  queue.synchronize();
  CHECK(queue.idle());
  REQUIRE(order.size() == 200);
  for (int i = 0; i < 200; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE(
    "a failure is kept with its record, drops what is queued behind it, and goes when cleared") {
  made_context made;
  stream& queue = made.queue();
  gate before;
  std::atomic<int> ran{0}, dropped{0};
  before.queue_on(queue);
  add(queue, [](execution&) { fail(VELO_ERR_SHAPE, "args.x", "[2]", "[3]"); });
  for (int i = 0; i < 3; ++i)
    add(
        queue, [&](execution&) { ++ran; }, &dropped);
  before.open.pass();
  const auto first = failure_of([&] { queue.synchronize(); });
  CHECK(first.code == VELO_ERR_SHAPE);
  CHECK(first.function == "velo_step");
  CHECK(first.argument == "args.x");
  CHECK(failure_of([&] { add(queue, [&](execution&) { ++ran; }); }).code == VELO_ERR_SHAPE);
  CHECK(failure_of([&] { (void)queue.idle(); }).code == VELO_ERR_SHAPE);
  CHECK(failure_of([&] { queue.synchronize(); }).code == VELO_ERR_SHAPE);
  queue.clear();
  queue.synchronize();
  CHECK(dropped == 3);
  CHECK(ran == 0);
  add(queue, [&](execution&) { ++ran; });
  queue.synchronize();
  CHECK(ran == 1);
}

TEST_CASE("foreign exceptions in queued work are kept too") {
  made_context made;
  stream& queue = made.queue();
  add(queue, [](execution&) { throw 1; });
  CHECK(failure_of([&] { queue.synchronize(); }).code == VELO_ERR_INTERNAL);
  queue.clear();
  add(queue, [](execution&) { throw std::bad_alloc(); });
  CHECK(failure_of([&] { queue.synchronize(); }).code == VELO_ERR_MEMORY);
}

TEST_CASE("streams of one context take turns on the pool and the scratch arena") {
  made_context made;
  std::vector<stream*> queues{&made.queue(), &made.queue(), &made.queue()};
  std::atomic<int> inside{0}, overlaps{0}, ran{0};
  const auto body = [&](execution& on) {
    if (inside.fetch_add(1) != 0) ++overlaps;
    int* scratch = on.scratch.take<int>(1000);
    on.threads(8, [&](std::int64_t task, int) { scratch[task] = static_cast<int>(task); });
    for (int i = 0; i < 8; ++i)
      if (scratch[i] != i) ++overlaps;
    ++ran;
    inside.fetch_sub(1);
  };
  for (int round = 0; round < 100; ++round) {
    for (stream* queue : queues) add(*queue, body);
    made.now().run_inline(body);
  }
  for (stream* queue : queues) queue->synchronize();
  CHECK(overlaps == 0);
  CHECK(ran == 400);
  velo_context_stats stats{};
  made.owner.fill(stats);
  CHECK(stats.operator_calls == 400);
}

TEST_CASE("an inline caller gets its turn between the pieces of a busy stream") {
  made_context made;
  stream& queue = made.queue();
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) {
    add(queue, [&](execution&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++ran;
    });
  }
  while (ran == 0) std::this_thread::yield();
  made.now().run_inline([&](execution&) {});
  CHECK(ran < 50);
  queue.synchronize();
}

TEST_CASE("work may call velo again with the stream it runs on") {
  made_context made;
  stream& inline_stream = made.now();
  int depth = 0;
  inline_stream.run_inline([&](execution& outer) {
    int* kept = outer.scratch.take<int>(16);
    kept[0] = 7;
    inline_stream.run_inline([&](execution& inner) {
      inner.scratch.take<int>(16)[0] = 8;
      ++depth;
    });
    CHECK(kept[0] == 7);
  });
  CHECK(depth == 1);
}

TEST_CASE("a failed inline call leaves the turn and the scratch free") {
  made_context made;
  stream& inline_stream = made.now();
  const auto round = [&] {
    CHECK_THROWS_AS(inline_stream.run_inline([](execution& on) {
      on.scratch.take(1 << 20);
      throw std::runtime_error("kernel");
    }),
                    std::runtime_error);
  };
  round();
  const std::uint64_t live = made.owner.memory().live();
  for (int i = 0; i < 10; ++i) round();
  CHECK(made.owner.memory().live() == live);
}

TEST_CASE("waiting for oneself is refused instead of waiting for ever") {
  made_context made;
  stream& queue = made.queue();
  std::atomic<int> code{0};
  add(queue, [&](execution&) { code = failure_of([&] { queue.synchronize(); }).code; });
  queue.synchronize();
  CHECK(code == VELO_ERR_STATE);
}

TEST_CASE("work cannot destroy the context it runs in") {
  made_context made;
  const velo_context handle = handle_of(made.owner);
  made.now().run_inline([&](execution&) { velo_context_destroy(handle); });
  CHECK(&resolve<context>(handle, "context") == &made.owner);
}

TEST_CASE("destroying a stream finishes its work first") {
  made_context made;
  stream& queue = made.queue();
  std::atomic<int> ran{0};
  for (int i = 0; i < 20; ++i) {
    add(queue, [&](execution&) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      ++ran;
    });
  }
  destroy_handle<stream>(handle_of(queue), "stream");
  CHECK(ran == 20);
}

TEST_CASE("an event recorded behind a failure still passes") {
  made_context made;
  stream &first = made.queue(), &second = made.queue();
  gate before;
  event mark(made.owner);
  before.queue_on(first);
  add(first, [](execution&) { fail(VELO_ERR_IO, "", "", ""); });
  first.record(mark);
  second.wait(mark);
  CHECK_FALSE(mark.last()->passed());
  before.open.pass();
  second.synchronize();
  CHECK(mark.last()->passed());
  CHECK(failure_of([&] { first.synchronize(); }).code == VELO_ERR_IO);
}
