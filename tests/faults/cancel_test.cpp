// A host's thread that is to be cancelled (pthread_cancel) while it is inside velo: no call ends
// half-way, and the request takes effect after it.
//
// Every row runs with a request pending, in a context whose callbacks are cancellation points
// themselves, as one that prints or waits is.
#include <pthread.h>

#include <catch2/catch.hpp>

#include "core/context.hpp"
#include "core/stream/event.hpp"
#include "core/stream/stream.hpp"
#include "tests/calls/rows.hpp"
#include "tests/host_memory.hpp"
#include "tests/stream_work.hpp"

namespace {

using namespace velo::testing;

// The host's functions are cancellation points.
struct cancelling_memory : host_memory {
  cancelling_memory() {
    on_allocate = on_free = [] { pthread_testcancel(); };
  }
};

// The result of a thread; PTHREAD_CANCELED if it was cancelled.
void* joined(pthread_t thread) {
  void* result = nullptr;
  REQUIRE(pthread_join(thread, &result) == 0);
  return result;
}
pthread_t start(void* (*entry)(void*), void* argument) {
  pthread_t thread{};
  REQUIRE(pthread_create(&thread, nullptr, entry, argument) == 0);
  return thread;
}

struct asked {
  const call_row& row;
  world& in;
  velo_status status = VELO_ERR_INTERNAL;
  bool returned = false, survived = false;
};

void* call_while_asked_to_go(void* argument) {
  auto& a = *static_cast<asked*>(argument);
  pthread_cancel(pthread_self());
  a.status = a.row.call(a.in);
  a.returned = true;
  pthread_testcancel();
  a.survived = true;
  return nullptr;
}

}  // namespace

TEST_CASE("a cancellation that is asked for during a call takes effect after it") {
  cancelling_memory memory;
  const velo_allocator host = memory.allocator();
  for (const call_row& row : every_call_row()) {
    INFO(row.name);
    world w(&host);
    row.begin(w);
    asked a{row, w};
    CHECK(joined(start(&call_while_asked_to_go, &a)) == PTHREAD_CANCELED);
    CHECK(a.returned);
    CHECK(a.status == VELO_OK);
    CHECK_FALSE(a.survived);
    row.end(w);
  }
}

TEST_CASE("a thread cancelled in what an adaptor calls returns from the call first") {
  cancelling_memory memory;
  const velo_allocator host = memory.allocator();
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  desc.upstream = &host;
  velo_adaptor below = nullptr, above = nullptr;
  velo_allocator of_host = VELO_ALLOCATOR_INIT, of_event = VELO_ALLOCATOR_INIT;
  desc.kind = VELO_ADAPTOR_STATISTICS;
  REQUIRE(velo_adaptor_create(&desc, &below) == VELO_OK);
  REQUIRE(velo_adaptor_allocator(below, &of_host) == VELO_OK);
  desc.upstream = &of_host;
  desc.kind = VELO_ADAPTOR_CALLBACK;
  desc.event = [](void*, velo_memory_event, void*, std::uint64_t, void*) {
    pthread_testcancel();
    return 0;
  };
  REQUIRE(velo_adaptor_create(&desc, &above) == VELO_OK);
  REQUIRE(velo_adaptor_allocator(above, &of_event) == VELO_OK);
  for (const velo_allocator* calls : {&of_host, &of_event}) {
    void* got = nullptr;
    struct asked_for {
      const velo_allocator& calls;
      void*& got;
    } asked{*calls, got};
    const pthread_t thread = start(
        [](void* argument) -> void* {
          const auto& a = *static_cast<asked_for*>(argument);
          const velo_device cpu = {VELO_DEVICE_CPU, 0};
          pthread_cancel(pthread_self());
          a.got = a.calls.allocate(a.calls.user, 100, 64, &cpu, nullptr);
          a.calls.deallocate(a.calls.user, a.got, 100, &cpu, nullptr);
          pthread_testcancel();
          return argument;
        },
        &asked);
    CHECK(joined(thread) == PTHREAD_CANCELED);
    CHECK(got != nullptr);
  }
  velo_adaptor_stats stats = VELO_ADAPTOR_STATS_INIT;
  REQUIRE(velo_adaptor_get_stats(below, &stats) == VELO_OK);
  CHECK(stats.allocations == 2);
  CHECK(stats.frees == 2);
  velo_adaptor_destroy(above);
  velo_adaptor_destroy(below);
}

TEST_CASE("a thread cancelled while it waits for a stream returns from the call first") {
  world w;
  w.open();
  velo_stream first = nullptr, second = nullptr;
  REQUIRE(velo_stream_create(w.context, &first) == VELO_OK);
  REQUIRE(velo_stream_create(w.context, &second) == VELO_OK);
  velo::core::point go;
  queue_work(first, [&] { go.wait(-1); });
  struct waiter {
    velo_stream stream;
    std::atomic<bool> begun{false}, returned{false};
  } waiting{first, {}, {}};
  const pthread_t thread = start(
      [](void* argument) -> void* {
        auto& self = *static_cast<waiter*>(argument);
        self.begun = true;
        velo_stream_synchronize(self.stream);
        self.returned = true;
        pthread_testcancel();
        return argument;
      },
      &waiting);
  while (!waiting.begun) sched_yield();
  REQUIRE(pthread_cancel(thread) == 0);
  go.pass();
  CHECK(joined(thread) == PTHREAD_CANCELED);
  CHECK(waiting.returned);
  CHECK(velo_stream_synchronize(first) == VELO_OK);
  w.close();
}

TEST_CASE("a host's functions that are cancellation points end no thread in the middle") {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  const velo_parallel_for loops = {
      sizeof loops, 2, nullptr,
      [](void*, std::int64_t tasks, void (*task)(void* user, std::int64_t index), void* user) {
        pthread_testcancel();
        for (std::int64_t i = 0; i < tasks; ++i) task(user, i);
      }};
  desc.parallel_for = &loops;
  desc.log = [](void*, velo_log_level, const char*, const char*) { pthread_testcancel(); };
  desc.config_json = R"({"log": "debug"})";
  for (const call_row& row : every_call_row()) {
    if (row.example == nullptr) continue;
    INFO(row.name);
    world w;
    row.begin(w, desc);
    asked a{row, w};
    CHECK(joined(start(&call_while_asked_to_go, &a)) == PTHREAD_CANCELED);
    CHECK(a.status == VELO_OK);
    CHECK_FALSE(a.survived);
    w.close();
  }
}
