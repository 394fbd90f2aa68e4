// The owner of a context in a test.
#pragma once

#include <catch2/catch.hpp>

#include "velo/context.h"
#include "velo/stream.h"

namespace velo::testing {

class live_context {
 public:
  explicit live_context(const char* config_json = nullptr) {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.config_json = config_json;
    make(desc);
  }
  explicit live_context(const velo_context_desc& desc) { make(desc); }
  ~live_context() { velo_context_destroy(handle_); }
  live_context(const live_context&) = delete;
  live_context& operator=(const live_context&) = delete;

  operator velo_context() const { return handle_; }

  // Asserts nothing, so any thread may call it.
  velo_stream inline_stream() const { return inline_stream_; }
  velo_stream new_stream() const {
    velo_stream stream = nullptr;
    REQUIRE(velo_stream_create(handle_, &stream) == VELO_OK);
    return stream;
  }
  velo_event new_event() const {
    velo_event event = nullptr;
    REQUIRE(velo_event_create(handle_, &event) == VELO_OK);
    return event;
  }
  velo_context_stats stats() const {
    velo_context_stats now{};
    now.struct_size = sizeof now;
    REQUIRE(velo_context_get_stats(handle_, &now) == VELO_OK);
    return now;
  }

 private:
  void make(const velo_context_desc& desc) {
    REQUIRE(velo_context_create(&desc, &handle_) == VELO_OK);
    REQUIRE(velo_context_stream(handle_, &inline_stream_) == VELO_OK);
  }
  velo_context handle_ = nullptr;
  velo_stream inline_stream_ = nullptr;
};

}  // namespace velo::testing
