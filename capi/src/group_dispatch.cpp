// The entry of velo/group.h that takes two groups.
#include "capi/src/group_of.hpp"
#include "comm/dispatch.hpp"
#include "core/guard.hpp"
#include "velo/group.h"

using namespace velo;

extern "C" {

velo_status velo_group_dispatch(velo_stream stream, velo_group inside, velo_group across,
                                const velo_tensor* in, const velo_tensor* targets,
                                const int64_t* out_counts, const velo_tensor* out) {
  return core::guard("velo_group_dispatch", [&] {
    comm::group& near = core::resolve<comm::group>(inside, "inside");
    comm::group& far = core::resolve<comm::group>(across, "across");
    core::stream& on = capi::stream_of(stream, near.owner());
    comm::submit(on, comm::dispatch_call(near, far, in, targets, out_counts, out));
  });
}

}  // extern "C"
