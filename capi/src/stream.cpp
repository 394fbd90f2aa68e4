// Entries of velo/stream.h.
#include "velo/stream.h"

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/stream/stream.hpp"

using namespace velo;

namespace {

core::stream& stream_of(velo_stream handle) {
  return core::use<core::stream>(handle, "stream");
}

}  // namespace

extern "C" {

velo_status velo_stream_create(velo_context context, velo_stream* stream) {
  return core::guard("velo_stream_create", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    capi::required(stream, "stream");
    *stream =
        core::handle_of(core::make_object<core::stream>(&owner, owner, core::stream::mode::queued));
  });
}

void velo_stream_destroy(velo_stream stream) {
  capi::destroy<core::stream>("velo_stream_destroy", stream, "stream", [](core::stream& given) {
    if (given.is_inline())
      core::fail(VELO_ERR_HANDLE, "stream", "a created stream", "the inline stream of a context");
    given.owner().require_can_wait("stream");
  });
}

velo_status velo_stream_synchronize(velo_stream stream) {
  return core::guard("velo_stream_synchronize", [&] {
    core::stream& given = stream_of(stream);
    if (given.owner().holds_up_others() && !given.is_worker() && !given.idle())
      given.owner().require_can_wait("stream");
    given.synchronize();
  });
}

velo_status velo_stream_query(velo_stream stream, int32_t* done) {
  return core::guard("velo_stream_query", [&](const core::inside_scope& here) {
    const auto& given = core::use<core::stream>(here, stream, "stream");
    capi::required(done, "done");
    *done = given.idle() ? 1 : 0;
  });
}

velo_status velo_stream_clear(velo_stream stream) {
  return core::guard("velo_stream_clear", [&] { stream_of(stream).clear(); });
}

velo_status velo_stream_wait(velo_stream stream, velo_event event) {
  return core::guard("velo_stream_wait", [&](const core::inside_scope& here) {
    auto& given = core::use<core::stream>(here, stream, "stream");
    given.wait(core::use<core::event>(here, event, "event"));
  });
}
}
