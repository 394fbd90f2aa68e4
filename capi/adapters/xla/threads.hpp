// XLA's threads as velo's: the context of calls that come from XLA.
//
// velo asks for `tasks` calls of a function; the calling thread offers XLA's pool some runners,
// takes tasks itself until none is left, and waits only for tasks that a runner has begun. A pool
// that is busy, or of one thread (perhaps the calling one), therefore costs speed and never an end.
// One context serves the process; which execution's pool to ask is noted per call.
#pragma once

#include "capi/adapters/xla/abi.hpp"
#include "velo/types.h"

namespace velo::adapters {

// The stream to run this frame's call on: the host's own context where it gave one, else the one on
// XLA's threads, else (a runtime without that entry) the adapters' default. Throws refusal.
// Destroyed when the call is over.
class xla_stream {
 public:
  explicit xla_stream(const xla::call_frame& frame);
  ~xla_stream();
  xla_stream(const xla_stream&) = delete;
  xla_stream& operator=(const xla_stream&) = delete;

  velo_stream get() const { return stream_; }

 private:
  velo_stream stream_ = nullptr;
};

}  // namespace velo::adapters
