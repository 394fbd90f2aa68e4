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

using namespace velo::core;
using velo::testing::failure_of;

namespace {

struct step final : work {
  explicit step(std::function<void(execution&)> body, std::atomic<int>* dropped = nullptr)
      : body_(std::move(body)), dropped_(dropped) {
    function = "velo_step";
  }
  void run(execution& state) override { body_(state); }
  void skip() noexcept override {
    if (dropped_ != nullptr) ++*dropped_;
  }

 private:
  std::function<void(execution&)> body_;
  std::atomic<int>* dropped_;
};

void does(stream& queue, std::function<void(execution&)> body,
          std::atomic<int>* dropped = nullptr) {
  queue.enqueue(queue.make<step>(std::move(body), dropped));
}

// A gate that work waits at, so that a test decides what is still queued when.
struct gate {
  point open;
  void queue_on(stream& queue) {
    struct waits final : work {
      explicit waits(point& p) : work(demand::waits), at(p) {}
      void run(execution&) override { at.wait(-1); }
      point& at;
    };
    queue.enqueue(queue.make<waits>(open));
  }
};

struct made_context {
  made_context() : owner(make_context({})) {}
  ~made_context() { destroy_handle<context>(handle_of(owner), "context"); }
  stream& queue() { return make_object<stream>(&owner, owner, stream::mode::queued); }
  context& owner;
};

}  // namespace

TEST_CASE("queued work runs in order, one after another") {
  made_context made;
  stream& queue = made.queue();
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) does(queue, [&order, i](execution&) { order.push_back(i); });
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
  does(queue, [](execution&) { fail(VELO_ERR_SHAPE, "args.x", "[2]", "[3]"); });
  for (int i = 0; i < 3; ++i)
    does(
        queue, [&](execution&) { ++ran; }, &dropped);
  before.open.pass();
  const auto first = failure_of([&] { queue.synchronize(); });
  CHECK(first.code == VELO_ERR_SHAPE);
  CHECK(first.function == "velo_step");
  CHECK(first.argument == "args.x");
  CHECK(failure_of([&] { does(queue, [&](execution&) { ++ran; }); }).code == VELO_ERR_SHAPE);
  CHECK(failure_of([&] { (void)queue.idle(); }).code == VELO_ERR_SHAPE);
  CHECK(failure_of([&] { queue.synchronize(); }).code == VELO_ERR_SHAPE);
  queue.clear();
  queue.synchronize();
  CHECK(dropped == 3);
  CHECK(ran == 0);
  does(queue, [&](execution&) { ++ran; });
  queue.synchronize();
  CHECK(ran == 1);
}

TEST_CASE("foreign exceptions in queued work are kept too") {
  made_context made;
  stream& queue = made.queue();
  does(queue, [](execution&) { throw 1; });
  CHECK(failure_of([&] { queue.synchronize(); }).code == VELO_ERR_INTERNAL);
  queue.clear();
  does(queue, [](execution&) { throw std::bad_alloc(); });
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
    for (stream* queue : queues) does(*queue, body);
    made.owner.inline_stream().run_inline(body);
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
    does(queue, [&](execution&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++ran;
    });
  }
  while (ran == 0) std::this_thread::yield();
  made.owner.inline_stream().run_inline([&](execution&) {});
  CHECK(ran < 50);
  queue.synchronize();
}

TEST_CASE("work may call velo again with the stream it runs on") {
  made_context made;
  stream& inline_stream = made.owner.inline_stream();
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
  stream& inline_stream = made.owner.inline_stream();
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
  does(queue, [&](execution&) { code = failure_of([&] { queue.synchronize(); }).code; });
  queue.synchronize();
  CHECK(code == VELO_ERR_STATE);
}

TEST_CASE("work cannot destroy the context it runs in") {
  made_context made;
  const velo_context handle = handle_of(made.owner);
  made.owner.inline_stream().run_inline([&](execution&) { velo_context_destroy(handle); });
  CHECK(&resolve<context>(handle, "context") == &made.owner);
}

TEST_CASE("destroying a stream finishes its work first") {
  made_context made;
  stream& queue = made.queue();
  std::atomic<int> ran{0};
  for (int i = 0; i < 20; ++i) {
    does(queue, [&](execution&) {
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
  does(first, [](execution&) { fail(VELO_ERR_IO, "", "", ""); });
  first.record(mark);
  second.wait(mark);
  CHECK_FALSE(mark.last()->passed());
  before.open.pass();
  second.synchronize();
  CHECK(mark.last()->passed());
  CHECK(failure_of([&] { first.synchronize(); }).code == VELO_ERR_IO);
}
