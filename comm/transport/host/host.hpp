// The transport of ranks that a host has already connected, over the host's own collectives.
#pragma once

#include <memory>

#include "comm/transport/transport.hpp"
#include "velo/host.h"

namespace velo::comm {

// The functions of one rank. They are released with their last owner: the group, the engine's
// thread, or a call that waits for a subgroup.
class host_table {
 public:
  explicit host_table(const velo_host_collectives& functions) noexcept : functions(functions) {}
  ~host_table();
  host_table(const host_table&) = delete;
  host_table& operator=(const host_table&) = delete;

  velo_host_collectives functions;
  // Called, owned by a group, or made for a subgroup. Only then are the functions released.
  bool is_used = false;
};

struct host_job {
  std::shared_ptr<host_table> table;
  int rank, size;
  std::int64_t timeout_ns;
  std::size_t buffer;  // bytes of staging; rank 0's value counts
};

// Throws VELO_ERR_NULL if the table lacks the functions from which collectives are composed.
void require_functions(const velo_host_collectives& table, const char* argument);

// Connects to the other ranks. Throws PEER, MEMORY.
std::unique_ptr<transport> make_host(const host_job& job);

}  // namespace velo::comm
