// The transport of ranks that a host has connected, over the host's own collectives.
#pragma once

#include <memory>

#include "comm/transport/transport.hpp"
#include "velo/host.h"

namespace velo::comm {

struct host_job {
  velo_host_collectives table;
  int rank, size;
  std::int64_t timeout_ns;
  std::size_t buffer;  // bytes of staging; rank 0's hold
};

// Throws VELO_ERR_NULL: a table of which no collective can be made.
void require_functions(const velo_host_collectives& table, const char* argument);

// Meets the other ranks. Throws PEER, MEMORY.
std::unique_ptr<transport> make_host(const host_job& job);

}  // namespace velo::comm
