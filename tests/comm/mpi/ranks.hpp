// A rank's group, and the text of a failure, for the tests over MPI.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "comm/collective/every_collective.hpp"
#include "tests/record.hpp"

namespace velo::testing {

inline velo_group_desc over_mpi(std::int64_t timeout_ms = 20000) {
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.transport = VELO_TRANSPORT_MPI;
  desc.timeout_ns = timeout_ms * 1000000;
  desc.buffer = 32 << 10;
  return desc;
}

// A rank's group over MPI, or the reason why it has none.
struct joined {
  rank_of_group me;
  explicit joined(const velo_group_desc& desc = over_mpi()) {
    me.context = new_context();
    REQUIRE(velo_context_stream(me.context, &me.stream) == VELO_OK);
    const velo_status done = velo_group_create(me.context, &desc, &me.group);
    const call_record why = last_record();
    INFO(why);
    REQUIRE(done == VELO_OK);
    const velo_group_info info = info_of(me.group);
    me.rank = info.rank, me.size = info.size;
    CHECK(info.transport == VELO_TRANSPORT_MPI);
  }
  ~joined() { velo_context_destroy(me.context); }
  joined(const joined&) = delete;
};

inline velo_status sum_of(const rank_of_group& me, std::int64_t count) {
  const numbers x(f32, count, me.rank);
  const velo_tensor view = x.view();
  return velo_group_all_reduce(me.stream, me.group, nullptr, &view, &view);
}

}  // namespace velo::testing
