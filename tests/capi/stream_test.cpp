// Streams and events through the C API: order between streams, deadlines, states.
#include "velo/stream.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/context.hpp"
#include "tests/record.hpp"
#include "tests/stream_work.hpp"
#include "tests/tensors.hpp"
#include "velo/ops_elementwise.h"

using namespace velo::testing;

TEST_CASE("an event passes when the stream has reached it") {
  const live_context context;
  const velo_stream stream = context.new_stream();
  const velo_event event = context.new_event();
  std::atomic<bool> go{false};
  hold(stream, go);
  REQUIRE(velo_event_record(event, stream) == VELO_OK);
  std::int32_t done = 7;
  REQUIRE(velo_event_query(event, &done) == VELO_OK);
  CHECK(done == 0);
  REQUIRE(velo_stream_query(stream, &done) == VELO_OK);
  CHECK(done == 0);
  CHECK(velo_event_synchronize(event, 0) == VELO_ERR_TIMEOUT);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(velo_event_synchronize(event, 20000000) == VELO_ERR_TIMEOUT);
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(20));
  CHECK(last_record().argument == "event");
  go = true;
  CHECK(velo_event_synchronize(event, -1) == VELO_OK);
  REQUIRE(velo_event_query(event, &done) == VELO_OK);
  CHECK(done == 1);
  CHECK(velo_stream_synchronize(stream) == VELO_OK);
  REQUIRE(velo_stream_query(stream, &done) == VELO_OK);
  CHECK(done == 1);
}

TEST_CASE("an event never recorded is a state, not a wait") {
  const live_context context;
  const velo_event event = context.new_event();
  std::int32_t done = 7;
  CHECK(velo_event_synchronize(event, -1) == VELO_ERR_STATE);
  CHECK(velo_event_query(event, &done) == VELO_ERR_STATE);
  CHECK(done == 7);
  CHECK(velo_stream_wait(context.inline_stream(), event) == VELO_ERR_STATE);
  CHECK(velo_stream_wait(context.new_stream(), event) == VELO_ERR_STATE);
}

TEST_CASE("a record on the inline stream has already passed") {
  const live_context context;
  const velo_event event = context.new_event();
  REQUIRE(velo_event_record(event, context.inline_stream()) == VELO_OK);
  CHECK(velo_event_synchronize(event, 0) == VELO_OK);
  CHECK(velo_stream_wait(context.inline_stream(), event) == VELO_OK);
}

TEST_CASE("a stream and the inline stream wait for another stream's event") {
  const live_context context;
  const velo_stream first = context.new_stream(), second = context.new_stream();
  const velo_event event = context.new_event(), behind = context.new_event();
  std::atomic<bool> go{false};
  hold(first, go);
  REQUIRE(velo_event_record(event, first) == VELO_OK);
  REQUIRE(velo_stream_wait(second, event) == VELO_OK);
  REQUIRE(velo_event_record(behind, second) == VELO_OK);
  CHECK(velo_event_synchronize(behind, 5000000) == VELO_ERR_TIMEOUT);
  velo_event_destroy(event);  // who waits for it is not disturbed
  CHECK(velo_event_synchronize(behind, 5000000) == VELO_ERR_TIMEOUT);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    go = true;
  });
  CHECK(velo_stream_wait(context.inline_stream(), behind) == VELO_OK);
  CHECK(go);
  later.join();
}

TEST_CASE("a later record replaces an earlier one for those who ask after it") {
  const live_context context;
  const velo_stream stream = context.new_stream(), waiter = context.new_stream();
  const velo_event event = context.new_event();
  std::atomic<bool> go{false};
  hold(stream, go);
  REQUIRE(velo_event_record(event, stream) == VELO_OK);
  REQUIRE(velo_stream_wait(waiter, event) == VELO_OK);
  REQUIRE(velo_event_record(event, context.inline_stream()) == VELO_OK);
  CHECK(velo_event_synchronize(event, 0) == VELO_OK);
  std::int32_t done = 1;
  REQUIRE(velo_stream_query(waiter, &done) == VELO_OK);
  CHECK(done == 0);  // it waits for the point that was recorded when it asked
  go = true;
  CHECK(velo_stream_synchronize(waiter) == VELO_OK);
}

TEST_CASE("the inline stream is not the caller's to destroy") {
  const live_context context;
  velo_stream_destroy(context.inline_stream());
  CHECK(last_record().code == VELO_ERR_HANDLE);
  CHECK(last_record().got == "the inline stream of a context");
  CHECK(velo_stream_synchronize(context.inline_stream()) == VELO_OK);
}

TEST_CASE("a queue that is full refuses, queues nothing and goes on when it is drained") {
  const live_context context(R"({"queue": 5, "threads": 1})");
  const velo_stream stream = context.new_stream();
  std::atomic<bool> go{false};
  hold(stream, go);
  std::vector<float> a(8, 1.0f), y(8, 0.0f);
  const std::int64_t shape[] = {8};
  const velo_tensor in = view_of(a.data(), f32, shape);
  velo_tensor out = in;
  out.data = y.data();
  velo_add_args args = VELO_ADD_ARGS_INIT;
  args.a = args.b = &in;
  args.y = &out;
  for (int held = 1; held < 5; ++held) REQUIRE(velo_add(stream, &args) == VELO_OK);
  CHECK_REFUSED(velo_add(stream, &args), VELO_ERR_FULL, "stream");
  CHECK(last_record().expected == "at most 5 pieces of queued work, the key queue");
  const velo_event event = context.new_event();
  CHECK(velo_event_record(event, stream) == VELO_ERR_FULL);
  std::int32_t done = 1;
  CHECK(velo_event_query(event, &done) == VELO_ERR_STATE);  // never recorded
  REQUIRE(velo_config_set(context, "queue", "6") == VELO_OK);
  CHECK(velo_event_record(event, stream) == VELO_OK);
  CHECK(velo_stream_query(stream, &done) == VELO_OK);  // a refusal is not kept
  CHECK(done == 0);
  go = true;
  REQUIRE(velo_stream_synchronize(stream) == VELO_OK);
  CHECK(y == std::vector<float>(8, 2.0f));
  CHECK(velo_add(stream, &args) == VELO_OK);
  CHECK(velo_stream_synchronize(stream) == VELO_OK);
}
