// The transport of ranks that are threads of one process: shared memory that is the process's own.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport/transport.hpp"

namespace velo::comm {

// One of each rank, in their order. slot_bytes: at least shared_area::least_slot, a multiple of
// 4096. Throws VELO_ERR_MEMORY.
std::vector<std::unique_ptr<transport>> make_local(int ranks, std::size_t slot_bytes,
                                                   std::int64_t timeout_ns);

}  // namespace velo::comm
