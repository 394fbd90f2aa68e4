// Work that tests put on streams: any function, a wait until the test lets go, and a failure.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "core/stream/stream.hpp"

namespace velo::testing {

inline core::stream& stream_of(velo_stream handle) {
  return core::resolve<core::stream>(handle, "stream");
}

class called_work final : public core::work {
 public:
  called_work(std::function<void()> body, core::demand what) : work(what), body_(std::move(body)) {}
  void run(core::execution&) override { body_(); }

 private:
  std::function<void()> body_;
};

// By default the work waits: it does not hold the context's turn.
inline void queue_work(velo_stream stream, std::function<void()> body,
                       core::demand what = core::demand::waits) {
  core::stream& to = stream_of(stream);
  to.enqueue(to.make<called_work>(std::move(body), what));
}

inline void wait_until(const std::atomic<bool>& open) {
  while (!open) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

// The stream's next work starts when `open` is set.
inline void hold(velo_stream stream, const std::atomic<bool>& open) {
  queue_work(stream, [&open] { wait_until(open); });
}

inline void queue_failure(velo_stream stream) {
  queue_work(stream, [] { core::fail(VELO_ERR_IO, "", "a disk", "none"); });
}

}  // namespace velo::testing
