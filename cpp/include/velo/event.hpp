// Events: a point in a stream's work that other streams, or the host, can wait for.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/stream.h"
#include "velo/stream.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_event {
  static void call(velo_event event) noexcept { VELO_FN(event_destroy)(event); }
};
}  // namespace detail

class event : public detail::owner<velo_event, detail::destroy_event> {
 public:
  // A new event of a context, not yet recorded.
  static outcome<event> create(velo_context context) {
    velo_event handle = nullptr;
    const velo_status status = VELO_FN(event_create)(context, &handle);
    event made;
    made.reset(handle);
    return detail::finish<event>(status, std::move(made));
  }

  // Records the point that the stream has reached, in place of an earlier record.
  outcome<> record(stream_ref stream) {
    return detail::check(VELO_FN(event_record)(get(), stream.get()));
  }

  // Waits on the calling thread; a negative timeout waits for ever.
  outcome<> synchronize(int64_t timeout_ns = -1) const {
    return detail::check(VELO_FN(event_synchronize)(get(), timeout_ns));
  }

  // Whether the recorded point has passed.
  outcome<bool> done() const {
    int32_t done = 0;
    const velo_status status = VELO_FN(event_query)(get(), &done);
    return detail::finish<bool>(status, done != 0);
  }
};

static_assert(sizeof(event) == sizeof(void*));

VELO_CPP_END
