// Streams: the order of work. stream owns a stream with a worker; stream_ref borrows any stream,
// also the context's inline stream.
//
// Every operator takes a stream_ref, which is one pointer and cheap to copy. It must not outlive
// the stream that it borrows.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/stream.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_stream {
  static void call(velo_stream stream) noexcept { VELO_FN(stream_destroy)(stream); }
};
}  // namespace detail

class stream_ref {
 public:
  stream_ref() noexcept = default;
  stream_ref(velo_stream stream) noexcept : handle_(stream) {}

  velo_stream get() const noexcept { return handle_; }
  operator velo_stream() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  // Waits for all work queued so far; reports the first failure that the stream holds.
  outcome<> synchronize() const { return detail::check(VELO_FN(stream_synchronize)(handle_)); }

  // Whether no work is queued or running.
  outcome<bool> done() const {
    int32_t done = 0;
    const velo_status status = VELO_FN(stream_query)(handle_, &done);
    return detail::finish<bool>(status, done != 0);
  }

  // Forgets the failure that the stream holds.
  outcome<> clear() const { return detail::check(VELO_FN(stream_clear)(handle_)); }

  // Makes later work of this stream wait for the event's last record.
  outcome<> wait(velo_event event) const {
    return detail::check(VELO_FN(stream_wait)(handle_, event));
  }

 private:
  velo_stream handle_ = nullptr;
};

class stream : public detail::owner<velo_stream, detail::destroy_stream> {
 public:
  // A new stream of a context, with a worker of its own.
  static outcome<stream> create(velo_context context) {
    velo_stream handle = nullptr;
    const velo_status status = VELO_FN(stream_create)(context, &handle);
    stream made;
    made.reset(handle);
    return detail::finish<stream>(status, std::move(made));
  }

  stream_ref ref() const noexcept { return stream_ref(get()); }
  operator stream_ref() const noexcept { return ref(); }

  outcome<> synchronize() const { return ref().synchronize(); }
  outcome<bool> done() const { return ref().done(); }
  outcome<> clear() const { return ref().clear(); }
  outcome<> wait(velo_event event) const { return ref().wait(event); }
};

static_assert(sizeof(stream) == sizeof(void*) && sizeof(stream_ref) == sizeof(void*));

VELO_CPP_END
