// Ranks as threads, each with a context and a group over the functions of a fake host.
#pragma once

#include "comm/collective/every_collective.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/host/fake_host.hpp"
#include "tests/threads.hpp"

namespace velo::testing {

inline velo_group_desc over(const velo_host_collectives& table, int rank, int size,
                            std::int64_t timeout_ms = 20000) {
  velo_group_desc desc = group_desc(timeout_ms);
  desc.transport = VELO_TRANSPORT_HOST;
  desc.host = &table;
  desc.rank = rank;
  desc.size = size;
  desc.buffer = 32 << 10;
  return desc;
}

// body(rank) on a thread for each rank of the host, with a group over it; returns their records.
// created: where the group was not made.
template <class Body>
std::vector<call_record> on_ranks(fake_host& host, std::int64_t timeout_ms, Body&& body) {
  std::vector<call_record> all(at(host.size()));
  on_threads(host.size(), [&](int rank) {
    rank_of_group me;
    const velo_host_collectives table = host.table(rank);
    velo_status done = join_group(me, over(table, rank, host.size(), timeout_ms));
    if (done == VELO_OK) done = body(me);
    all[at(rank)] = record_of(done);
    velo_context_destroy(me.context);
  });
  return all;
}

}  // namespace velo::testing
