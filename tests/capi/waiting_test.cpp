// Waiting work keeps nobody from computing: work that waits beside a matrix product, and two
// contexts of which one is stuck.
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>

#include "core/stream/stream.hpp"
#include "tests/capi/values.hpp"
#include "tests/host_memory.hpp"
#include "tests/stream_work.hpp"

using namespace velo::testing;
namespace core = velo::core;

namespace {

// Work blocks in a read until the test writes.
class pipe_gate {
 public:
  pipe_gate() { REQUIRE(pipe(ends_) == 0); }
  ~pipe_gate() {
    close(ends_[0]);
    close(ends_[1]);
  }
  pipe_gate(const pipe_gate&) = delete;

  void pass() {  // returns when the gate is open
    char byte = 0;
    arrived = true;
    while (read(ends_[0], &byte, 1) != 1) {
    }
    left = true;
  }
  void await_arrival() const {
    while (!arrived) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  void open() { REQUIRE(write(ends_[1], "", 1) == 1); }

  std::atomic<bool> arrived{false}, left{false};

 private:
  int ends_[2] = {};
};

struct product {
  float_tensor a{{64, 96}, 1}, b{{96, 80}, 2}, c{{64, 80}, 0};
  velo_status run(velo_stream stream) const {
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = &a.view;
    args.b = &b.view;
    args.c = &c.view;
    return velo_matmul(stream, &args);
  }
  bool right() const {
    for (const float value : c.data)
      if (value != 192) return false;
    return true;
  }
};

// All that a host does with a context, from beginning to end.
bool lives_and_dies() {
  velo_context context = nullptr;
  velo_stream now = nullptr, queue = nullptr;
  velo_event event = nullptr;
  velo_pack pack = nullptr;
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.k = desc.n = 32;
  desc.dtype = f32;
  const product first, second;
  const bool worked =
      velo_context_create(nullptr, &context) == VELO_OK &&
      velo_context_stream(context, &now) == VELO_OK &&
      velo_stream_create(context, &queue) == VELO_OK &&
      velo_event_create(context, &event) == VELO_OK &&
      velo_pack_create(context, &desc, &pack) == VELO_OK && first.run(now) == VELO_OK &&
      second.run(queue) == VELO_OK && velo_event_record(event, queue) == VELO_OK &&
      velo_stream_wait(now, event) == VELO_OK && velo_stream_synchronize(queue) == VELO_OK;
  velo_pack_destroy(pack);
  velo_context_destroy(context);
  return worked && first.right() && second.right();
}

// Whether a context lives and dies while another one is stuck at the gate. Where it waits for the
// other, the answer is no instead of a hang.
bool lives_beside(pipe_gate& gate) {
  gate.await_arrival();
  std::future<bool> life = std::async(std::launch::async, &lives_and_dies);
  const bool ended = life.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  const bool beside = ended && !gate.left;
  gate.open();
  return life.get() && beside;
}

// A host whose callbacks stop at the gate once.
struct stuck_host {
  pipe_gate gate;
  std::atomic<bool> stop{false};

  host_memory memory;

  stuck_host() {
    memory.on_allocate = [this] { stop_once(); };
  }
  static void log(void* user, velo_log_level, const char*, const char*) {
    static_cast<stuck_host*>(user)->stop_once();
  }
  void stop_once() {
    if (stop.exchange(false)) gate.pass();
  }
};

}  // namespace

TEST_CASE("a product on a queue and one inline end while queued work waits") {
  const live_context context;
  pipe_gate gate;
  const velo_stream waiting = context.new_stream(), computing = context.new_stream();
  queue_work(waiting, [&] { gate.pass(); });
  gate.await_arrival();
  const product queued, immediate;
  REQUIRE(queued.run(computing) == VELO_OK);
  REQUIRE(immediate.run(context.inline_stream()) == VELO_OK);
  REQUIRE(velo_stream_synchronize(computing) == VELO_OK);
  CHECK(queued.right());
  CHECK(immediate.right());
  CHECK_FALSE(gate.left);
  gate.open();
  CHECK(velo_stream_synchronize(waiting) == VELO_OK);
  CHECK(gate.left);
}

TEST_CASE("a product on a queue and one inline end while a caller waits on the inline stream") {
  const live_context context;
  pipe_gate gate;
  const velo_stream now = context.inline_stream(), computing = context.new_stream();
  std::thread caller([&] { stream_of(now).run_waiting([&](core::execution&) { gate.pass(); }); });
  gate.await_arrival();
  const product queued, immediate;
  CHECK(queued.run(computing) == VELO_OK);
  CHECK(immediate.run(now) == VELO_OK);
  CHECK(velo_stream_synchronize(computing) == VELO_OK);
  CHECK(queued.right());
  CHECK(immediate.right());
  CHECK_FALSE(gate.left);
  gate.open();
  caller.join();
}

TEST_CASE("a context that is stuck in its turn holds up no other") {
  const live_context context;
  pipe_gate gate;
  std::thread caller([&] {
    stream_of(context.inline_stream()).run_inline([&](core::execution&) { gate.pass(); });
  });
  CHECK(lives_beside(gate));
  caller.join();
}

TEST_CASE("a context that is stuck in its host's allocator holds up no other") {
  stuck_host host;
  const velo_allocator allocator = host.memory.allocator();
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.allocator = &allocator;
  const live_context context(desc);
  const velo_stream now = context.inline_stream();

  SECTION("in its turn") {
    host.stop = true;
    std::thread caller([&] {
      stream_of(now).run_inline([](core::execution& on) { on.scratch.take(std::size_t{1} << 20); });
    });
    CHECK(lives_beside(host.gate));
    caller.join();
  }
  SECTION("while it makes a context") {
    host.stop = true;
    velo_status made = VELO_ERR_INTERNAL;
    velo_context other = nullptr;
    std::thread caller([&] { made = velo_context_create(&desc, &other); });
    CHECK(lives_beside(host.gate));
    caller.join();
    CHECK(made == VELO_OK);
    velo_context_destroy(other);
  }
}

TEST_CASE("a context that is stuck in its host's log holds up no other") {
  stuck_host host;
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.log = &stuck_host::log;
  desc.log_user = &host;
  const live_context context(desc);
  const velo_stream queue = context.new_stream();
  host.stop = true;
  queue_failure(queue);
  CHECK(lives_beside(host.gate));
  CHECK(velo_stream_synchronize(queue) == VELO_ERR_IO);
}
