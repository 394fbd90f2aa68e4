// A stream whose work stands still for as long as a test wants.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "capi/live.hpp"
#include "core/stream/stream.hpp"

namespace velo::testing {

struct held_work final : core::work {
  explicit held_work(std::atomic<bool>& open) : work(core::demand::waits), open_(open) {}
  void run(core::execution&) override {
    while (!open_) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  std::atomic<bool>& open_;
};

inline core::stream& stream_of(velo_stream handle) {
  return core::resolve<core::stream>(handle, "stream");
}

// A stream whose work stands still until `open`.
struct held_stream {
  live_context context;
  velo_stream handle = context.new_stream();
  std::atomic<bool> open{false};

  held_stream() { hold(); }
  ~held_stream() { open = true; }
  void hold() {
    core::stream& s = stream_of(handle);
    s.enqueue(s.make<held_work>(open));
  }
  void release() {
    open = true;
    REQUIRE(velo_stream_synchronize(handle) == VELO_OK);
  }
};

}  // namespace velo::testing
