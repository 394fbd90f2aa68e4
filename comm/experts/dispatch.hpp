// Rows to the ranks that want them, so that a row crosses to another host once (rows.hpp).
//
// First the ranks of one place on all hosts tell each other how many rows they have for each
// other's host, and give these with their targets; then the ranks of a host hand on what came, host
// by host. Order of what a rank gets: by rank, row, target, as if all had been given at once.
//
// Cost: 8 bytes for each host, and of each row that crosses its bytes and its targets, on the slow
// way; memory for the rows that cross, come, and are handed on from one host.
#pragma once

#include "comm/experts/rows.hpp"

namespace velo::comm {

struct dispatch {
  routes to;
  const char* in;
  char* out;
  std::vector<part> out_parts;  // elements from each rank
};

// Throws as the C function says.
dispatch dispatch_call(group& inside, group& across, const velo_tensor* in,
                       const velo_tensor* targets, const std::int64_t* out_counts,
                       const velo_tensor* out);
void submit(core::stream& on, const dispatch& what);

}  // namespace velo::comm
