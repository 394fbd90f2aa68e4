// The transport of ranks that a host has connected, over the host's own collectives.
#pragma once

#include <memory>

#include "comm/transport/transport.hpp"
#include "velo/host.h"

namespace velo::comm {

// The functions of one rank, released when nobody is left who could call them: the group, the
// thread they are called on, or whoever waits for a part to be made.
class host_table {
 public:
  explicit host_table(const velo_host_collectives& functions) noexcept : functions(functions) {}
  ~host_table();
  host_table(const host_table&) = delete;
  host_table& operator=(const host_table&) = delete;

  velo_host_collectives functions;
  bool is_used = false;  // called, or a group's, or made for a part: to be released
};

struct host_job {
  std::shared_ptr<host_table> table;
  int rank, size;
  std::int64_t timeout_ns;
  std::size_t buffer;  // bytes of staging; rank 0's hold
};

// Throws VELO_ERR_NULL: a table of which no collective can be made.
void require_functions(const velo_host_collectives& table, const char* argument);

// Meets the other ranks. Throws PEER, MEMORY.
std::unique_ptr<transport> make_host(const host_job& job);

}  // namespace velo::comm
