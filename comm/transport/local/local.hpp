// The transport of ranks that are threads of one process. Their shared memory is private to it.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport/transport.hpp"

namespace velo::comm {

// Makes one transport for each rank, in rank order. slot_bytes: at least shared_area::least_slot, a
// multiple of
// 4096. Throws VELO_ERR_MEMORY.
std::vector<std::unique_ptr<transport>> make_local(int ranks, std::size_t slot_bytes,
                                                   std::int64_t timeout_ns);

}  // namespace velo::comm
