// Lanes: work that waits leaves the turn to others, memory of work is used again, and a lane beside
// the streams is ordered with them by points.
#include "core/stream/lane.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "core/stream/stream.hpp"
#include "tests/core/fails.hpp"
#include "tests/core/streams.hpp"

using namespace velo::core;
using namespace velo::testing;

namespace {

struct large final : work {
  explicit large(std::atomic<int>& gone) : gone_(gone) {}
  ~large() override { ++gone_; }
  void run(execution&) override { bytes_[sizeof bytes_ - 1] = 1; }

 private:
  std::atomic<int>& gone_;
  char bytes_[3 * work_pool::block_bytes] = {};
};

struct broken final : work {
  broken() { throw 1; }
  void run(execution&) override {}
};

}  // namespace

TEST_CASE("queued work that waits leaves the turn to work that computes") {
  made_context made;
  stream &waiting = made.queue(), &computing = made.queue();
  point go;
  std::atomic<bool> done{false};
  add(waiting, demand::waits, [&](execution&) {
    go.wait(-1);
    done = true;
  });
  int computed = 0;
  made.now().run_inline([&](execution&) { ++computed; });
  add(computing, demand::computes, [&](execution&) { ++computed; });
  computing.synchronize();
  CHECK(computed == 2);
  CHECK_FALSE(done);
  CHECK_FALSE(waiting.idle());
  go.pass();
  waiting.synchronize();
  CHECK(done);
}

TEST_CASE("work that waits on the inline stream blocks its caller and nobody else") {
  made_context made;
  point inside, go;
  std::atomic<bool> done{false};
  std::thread caller([&] {
    made.now().run_waiting([&](execution&) {
      inside.pass();
      go.wait(-1);
    });
    done = true;
  });
  inside.wait(-1);
  int computed = 0;
  made.now().run_inline([&](execution&) { ++computed; });
  CHECK(computed == 1);
  CHECK_FALSE(done);
  go.pass();
  caller.join();
  CHECK(done);
}

TEST_CASE("work is given its stream and context; to wait, it has one thread and empty scratch") {
  context_options options;
  options.threads = 3;
  context& owner = make_context(options);
  stream& now = owner.inline_stream();
  stream& queue = make_object<stream>(&owner, owner, stream::mode::queued);
  int threads[4] = {};
  int right = 0;
  const void* scratch[2] = {};
  now.run_inline([&](execution& on) {
    threads[0] = on.threads.threads();
    right += &on.context == &owner && &on.stream == &now;
  });
  now.run_waiting([&](execution& on) {
    threads[1] = on.threads.threads();
    right += &on.context == &owner && &on.stream == &now;
  });
  add(queue, demand::computes, [&](execution& on) {
    threads[2] = on.threads.threads();
    right += &on.context == &owner && &on.stream == &queue;
  });
  for (const void*& first : scratch) {
    add(queue, demand::waits, [&](execution& on) {
      threads[3] = on.threads.threads();
      right += &on.context == &owner && &on.stream == &queue;
      first = on.scratch.take(1000);
    });
  }
  queue.synchronize();
  CHECK(right == 5);
  CHECK(threads[0] == 3);
  CHECK(threads[1] == 1);
  CHECK(threads[2] == 3);
  CHECK(threads[3] == 1);
  CHECK(scratch[0] != nullptr);
  CHECK(scratch[0] == scratch[1]);  // empty again in between
  destroy_handle<context>(handle_of(owner), "context");
}

TEST_CASE("waiting inside work that computes is refused: everybody would wait with it") {
  made_context made;
  stream &now = made.now(), &queue = made.queue();
  point go;
  add(queue, demand::waits, [&](execution&) { go.wait(-1); });
  event mark(made.owner);
  queue.record(mark);
  int ran = 0;
  now.run_inline([&](execution&) {
    CHECK(failure_of([&] { now.run_waiting([&](execution&) { ++ran; }); }).code == VELO_ERR_STATE);
    CHECK(failure_of([&] { now.wait(mark); }).code == VELO_ERR_STATE);
  });
  CHECK(ran == 0);
  go.pass();
  queue.synchronize();
  now.run_inline([&](execution&) { now.wait(mark); });  // has passed: nothing to wait for
}

TEST_CASE("work that waits may compute, and may not destroy its context") {
  made_context made;
  const velo_context handle = handle_of(made.owner);
  bool working_outside = made.owner.working_here(), working_inside = false;
  int computed = 0;
  made.now().run_waiting([&](execution& on) {
    working_inside = on.context.working_here();
    on.stream.run_inline([&](execution&) { ++computed; });
    velo_context_destroy(handle);
  });
  CHECK_FALSE(working_outside);
  CHECK(working_inside);
  CHECK(computed == 1);
  CHECK(&resolve<context>(handle, "context") == &made.owner);
  CHECK_FALSE(made.owner.working_here());
}

TEST_CASE("a failure of work that waits is kept like any other") {
  made_context made;
  stream& queue = made.queue();
  add(queue, demand::waits, [](execution&) { fail(VELO_ERR_PEER, "", "rank 1", "silence"); });
  const auto kept = failure_of([&] { queue.synchronize(); });
  CHECK(kept.code == VELO_ERR_PEER);
  CHECK(kept.function == "velo_step");
  CHECK(failure_of([&] { add(queue, demand::waits, [](execution&) {}); }).code == VELO_ERR_PEER);
  queue.clear();
  queue.synchronize();
}

TEST_CASE("the memory of work is used again") {
  made_context made;
  stream& queue = made.queue();
  std::set<const void*> places;
  for (int i = 0; i < 50; ++i) {
    auto work = queue.make<step>([](execution&) {});
    places.insert(&*work);
    queue.enqueue(std::move(work));
    queue.synchronize();
  }
  CHECK(places.size() == 1);
  // More at once than a pool keeps, and work of its own size: neither is lost nor kept.
  std::atomic<int> gone{0};
  for (int i = 0; i < work_pool::most_kept + 100; ++i)
    add(queue, demand::computes, [](execution&) {});
  queue.enqueue(queue.make<large>(gone));
  CHECK_THROWS_AS(queue.make<broken>(), int);
  queue.synchronize();
  CHECK(gone == 1);
}

TEST_CASE("points are used again once nobody holds them") {
  made_context made;
  event mark(made.owner);
  std::set<const point*> points;
  for (int i = 0; i < 50; ++i) {
    made.now().record(mark);
    points.insert(mark.last().get());
    CHECK(mark.last()->passed());
  }
  CHECK(points.size() == 2);  // the recorded one, and the one to be recorded
  const std::shared_ptr<point> held = mark.last();
  stream& queue = made.queue();
  point go;
  add(queue, demand::waits, [&](execution&) { go.wait(-1); });
  for (int i = 0; i < 10; ++i) {
    queue.record(mark);
    CHECK_FALSE(mark.last()->passed());
    CHECK(held->passed());  // a point somebody holds is never opened again
  }
  go.pass();
  CHECK(mark.last()->wait(-1));
}

TEST_CASE("a lane beside the streams is ordered with them by points") {
  made_context made;
  stream& compute = made.queue();
  lane beside(made.owner, made.now(), nullptr, "velo/test");
  const auto back = std::make_shared<point>();
  point peer;
  std::string order;
  add(compute, demand::computes, [&](execution&) { order += 'a'; });
  event filled(made.owner);
  compute.record(filled);
  beside.wait_for(filled.last());
  beside.submit(beside.make<step>(
      [&](execution& on) {
        peer.wait(-1);
        order += &on.stream == &made.now() ? 'b' : '?';
      },
      nullptr, demand::waits));
  beside.pass(back);
  CHECK_FALSE(beside.idle());
  peer.pass();
  CHECK(back->wait(-1));
  add(compute, demand::computes, [&](execution&) { order += 'c'; });
  compute.synchronize();
  beside.synchronize();
  CHECK(beside.idle());
  CHECK(order == "abc");
}
