// Structs of the ABI that many tests fill in, each in one expression.
#pragma once

#include <cstdint>

#include "velo/context.h"
#include "velo/pool.h"
#include "velo/schedule.h"

namespace velo::testing {

inline velo_pool_request request_of(std::uint64_t bytes) {
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  request.bytes = bytes;
  return request;
}

inline velo_context_desc context_desc(int threads, const velo_allocator* allocator = nullptr) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = threads;
  desc.allocator = allocator;
  return desc;
}

struct schedule_sizes {
  std::int32_t ranks, microbatches;
  std::int32_t chunks = 0, group = 0;
  std::uint32_t flags = 0;
  std::int32_t splits = 0;
  double cap = 0;
};

inline velo_schedule_desc desc_of(velo_schedule_kind kind, const schedule_sizes& of) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  desc.kind = kind;
  desc.ranks = of.ranks;
  desc.microbatches = of.microbatches;
  desc.chunks = of.chunks;
  desc.group = of.group;
  desc.flags = of.flags;
  desc.splits = of.splits;
  desc.cap = of.cap;
  return desc;
}

}  // namespace velo::testing
