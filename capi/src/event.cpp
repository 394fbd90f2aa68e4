// Entries of velo/stream.h for events.
#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/stream/stream.hpp"
#include "velo/stream.h"

using namespace velo;

extern "C" {

velo_status velo_event_create(velo_context context, velo_event* event) {
  return core::guard("velo_event_create", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    capi::required(event, "event");
    *event = core::handle_of(core::make_object<core::event>(&owner, owner));
  });
}

void velo_event_destroy(velo_event event) {
  capi::destroy<core::event>("velo_event_destroy", event, "event");
}

velo_status velo_event_record(velo_event event, velo_stream stream) {
  return core::guard("velo_event_record", [&](const core::inside_scope& here) {
    auto& given = core::use<core::event>(here, event, "event");
    core::use<core::stream>(here, stream, "stream").record(given);
  });
}

velo_status velo_event_synchronize(velo_event event, int64_t timeout_ns) {
  return core::guard("velo_event_synchronize", [&](const core::inside_scope& here) {
    const auto& given = core::use<core::event>(here, event, "event");
    const std::shared_ptr<core::point> last = given.last();
    if (timeout_ns < 0 && !last->passed()) given.owner().require_can_wait("event");
    if (last->wait(timeout_ns)) return;
    core::fail(VELO_ERR_TIMEOUT, "event", core::concat("the event within ", timeout_ns, " ns"),
               "work that is not done");
  });
}

velo_status velo_event_query(velo_event event, int32_t* done) {
  return core::guard("velo_event_query", [&](const core::inside_scope& here) {
    const auto& given = core::use<core::event>(here, event, "event");
    capi::required(done, "done");
    *done = given.last()->passed() ? 1 : 0;
  });
}
}
