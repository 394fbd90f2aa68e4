// Entries of velo/dispatch.h.
#include "velo/dispatch.h"

#include "capi/src/group_of.hpp"
#include "comm/experts/combine.hpp"
#include "comm/experts/dispatch.hpp"
#include "core/handle/guard.hpp"

using namespace velo;

namespace {

// call(inside, across): returns the checked call.
template <class Call>
velo_status submit(const char* function, velo_stream stream, velo_group inside, velo_group across,
                   Call&& call) {
  return core::guard(function, [&](const core::inside_scope& here) {
    comm::group& host_group = core::use<comm::group>(here, inside, "inside");
    comm::group& across_hosts = core::use<comm::group>(here, across, "across");
    core::stream& on = capi::stream_of(here, stream, host_group.owner());
    comm::submit(on, call(host_group, across_hosts));
  });
}

}  // namespace

extern "C" {

velo_status velo_group_dispatch(velo_stream stream, velo_group inside, velo_group across,
                                const velo_tensor* in, const velo_tensor* targets,
                                const int64_t* out_counts, const velo_tensor* out) {
  return submit("velo_group_dispatch", stream, inside, across,
                [&](comm::group& host_group, comm::group& across_hosts) {
                  return comm::dispatch_call(host_group, across_hosts, in, targets, out_counts,
                                             out);
                });
}

velo_status velo_group_combine(velo_stream stream, velo_group inside, velo_group across,
                               const velo_tensor* in, const int64_t* in_counts,
                               const velo_tensor* targets, const velo_tensor* weights,
                               const velo_tensor* out) {
  return submit("velo_group_combine", stream, inside, across,
                [&](comm::group& host_group, comm::group& across_hosts) {
                  return comm::combine_call(host_group, across_hosts, in, in_counts, targets,
                                            weights, out);
                });
}

}  // extern "C"
