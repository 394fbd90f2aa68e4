// Entries of velo/dispatcher.h.
#include "velo/dispatcher.h"

#include <algorithm>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "capi/src/group_of.hpp"
#include "core/handle/guard.hpp"
#include "sched/moe/dispatcher.hpp"

using namespace velo;
using capi::stream_of;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 64;
constexpr std::uint32_t info_size = 40;
static_assert(sizeof(velo_dispatcher_desc) >= desc_size &&
              sizeof(velo_dispatcher_info) >= info_size);

sched::dispatcher& dispatcher_of(velo_dispatcher handle) {
  return core::use<sched::dispatcher>(handle, "dispatcher");
}
sched::routing& routing_of(velo_routing handle) {
  return core::use<sched::routing>(handle, "routing");
}

// The handles that a movement of rows has.
struct movement {
  sched::dispatcher& of;
  core::stream& on;
  sched::routing& by;
};
movement movement_of(const core::inside_scope& here, velo_dispatcher dispatcher, velo_stream stream,
                     velo_routing routing) {
  sched::dispatcher& of = dispatcher_of(dispatcher);
  return {of, stream_of(here, stream, of.owner()), routing_of(routing)};
}

}  // namespace

extern "C" {

velo_status velo_dispatcher_create(velo_group group, const velo_dispatcher_desc* desc,
                                   velo_dispatcher* dispatcher) {
  return core::guard("velo_dispatcher_create", [&](const core::inside_scope& here) {
    core::context& owner = capi::group_of(here, group).owner();
    const velo_dispatcher_desc defaults = VELO_DISPATCHER_DESC_INIT;
    const velo_dispatcher_desc given = capi::read_struct(desc, desc_size, "desc", defaults);
    capi::required(dispatcher, "dispatcher");
    *dispatcher = core::handle_of(core::make_object<sched::dispatcher>(&owner, group, given));
  });
}

void velo_dispatcher_destroy(velo_dispatcher dispatcher) {
  capi::destroy<sched::dispatcher>("velo_dispatcher_destroy", dispatcher, "dispatcher");
}

velo_status velo_dispatcher_get_info(velo_dispatcher dispatcher, velo_dispatcher_info* info) {
  return core::guard("velo_dispatcher_get_info", [&] {
    velo_dispatcher_info now{};
    dispatcher_of(dispatcher).fill(now);
    capi::write_struct(info, info_size, "info", now);
  });
}

velo_status velo_routing_create(velo_dispatcher dispatcher, velo_routing* routing) {
  return core::guard("velo_routing_create", [&] {
    core::context& owner = dispatcher_of(dispatcher).owner();
    capi::required(routing, "routing");
    *routing = core::handle_of(core::make_object<sched::routing>(&owner, dispatcher, owner));
  });
}

void velo_routing_destroy(velo_routing routing) {
  capi::destroy<sched::routing>("velo_routing_destroy", routing, "routing");
}

velo_status velo_routing_set(velo_routing routing, velo_stream stream, const velo_tensor* choices,
                             const velo_tensor* scores, const velo_tensor* places) {
  return core::guard("velo_routing_set", [&](const core::inside_scope& here) {
    sched::routing& of = routing_of(routing);
    of.set(stream_of(here, stream, of.of().owner()), choices, scores, places);
  });
}

velo_status velo_routing_get_rows(velo_routing routing, int64_t* counts, int64_t capacity,
                                  int64_t* rows) {
  return core::guard("velo_routing_get_rows", [&] {
    sched::routing& of = routing_of(routing);
    capi::require_room(counts, capacity, "counts", "numbers");
    const sched::row_routes& routes = of.wait();
    const std::int64_t known = std::min(capacity, routes.layout().each());
    for (std::int64_t e = 0; e < known; ++e) counts[e] = routes.rows_of(e);
    if (rows != nullptr) *rows = routes.rows();
  });
}

velo_status velo_routing_reset(velo_routing routing) {
  return core::guard("velo_routing_reset", [&] { routing_of(routing).reset(); });
}

velo_status velo_dispatcher_dispatch(velo_dispatcher dispatcher, velo_stream stream,
                                     velo_routing routing, const velo_tensor* tokens,
                                     const velo_tensor* rows) {
  return core::guard("velo_dispatcher_dispatch", [&](const core::inside_scope& here) {
    const movement all = movement_of(here, dispatcher, stream, routing);
    all.of.dispatch(all.on, all.by, tokens, rows);
  });
}

velo_status velo_dispatcher_combine(velo_dispatcher dispatcher, velo_stream stream,
                                    velo_routing routing, const velo_tensor* rows,
                                    const velo_tensor* weights, const velo_tensor* tokens) {
  return core::guard("velo_dispatcher_combine", [&](const core::inside_scope& here) {
    const movement all = movement_of(here, dispatcher, stream, routing);
    all.of.combine(all.on, all.by, rows, weights, tokens);
  });
}

velo_status velo_dispatcher_combine_backward(velo_dispatcher dispatcher, velo_stream stream,
                                             velo_routing routing, const velo_tensor* dtokens,
                                             const velo_tensor* rows, const velo_tensor* weights,
                                             const velo_tensor* drows,
                                             const velo_tensor* dweights) {
  return core::guard("velo_dispatcher_combine_backward", [&](const core::inside_scope& here) {
    const movement all = movement_of(here, dispatcher, stream, routing);
    all.of.combine_backward(all.on, all.by, {dtokens, rows, weights, drows, dweights});
  });
}

velo_status velo_dispatcher_dispatch_backward(velo_dispatcher dispatcher, velo_stream stream,
                                              velo_routing routing, const velo_tensor* drows,
                                              const velo_tensor* dtokens) {
  return core::guard("velo_dispatcher_dispatch_backward", [&](const core::inside_scope& here) {
    const movement all = movement_of(here, dispatcher, stream, routing);
    all.of.dispatch_backward(all.on, all.by, drows, dtokens);
  });
}
}
