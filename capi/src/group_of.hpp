// A group and a stream of its context, for the entries of group.h and buckets.h.
#pragma once

#include "comm/group/group.hpp"
#include "core/failure.hpp"
#include "core/stream/stream.hpp"

namespace velo::capi {

inline comm::group& group_of(velo_group handle) {
  return core::use<comm::group>(handle, "group");
}
inline comm::group& group_of(const core::inside_scope& here, velo_group handle) {
  return core::use<comm::group>(here, handle, "group");
}

// owner: the group's context.
inline core::stream& stream_of(const core::inside_scope& here, velo_stream handle,
                               const core::context& owner) {
  auto& on = core::use<core::stream>(here, handle, "stream");
  if (&on.owner() != &owner)
    core::fail(VELO_ERR_ARGUMENT, "stream", "a stream of the group's context",
               "one of another context");
  return on;
}

}  // namespace velo::capi
