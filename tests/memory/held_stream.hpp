// A stream whose work stands still for as long as a test wants.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>

#include "tests/context.hpp"
#include "tests/stream_work.hpp"

namespace velo::testing {

// A stream whose work stands still until `open`.
struct held_stream {
  live_context context;
  velo_stream handle = context.new_stream();
  std::atomic<bool> open{false};

  held_stream() { hold(); }
  ~held_stream() { open = true; }
  void hold() { testing::hold(handle, open); }
  void release() {
    open = true;
    REQUIRE(velo_stream_synchronize(handle) == VELO_OK);
  }
};

}  // namespace velo::testing
