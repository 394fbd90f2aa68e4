// Dispatch: rows go to their target ranks, and each row crosses to another host at most once
// (rows.hpp).
//
// First, ranks with the same local rank exchange across hosts the counts of rows for each host, and
// the rows with their targets. Then the ranks of a host exchange the received rows, host by host. A
// rank receives rows in the order of rank, row and target, as from one all-to-all of all ranks.
//
// Cost between hosts: 8 bytes for each host, and the bytes and targets of each row that crosses.
// Memory: the rows sent, the rows received, and the rows forwarded from one host.
#pragma once

#include "comm/experts/rows.hpp"

namespace velo::comm {

struct dispatch_request {
  routing to;
  const char* in;
  char* out;
  blocks out_blocks;  // elements from each rank
};

// Throws as the C function does.
dispatch_request dispatch_call(group& inside, group& across, const velo_tensor* in,
                               const velo_tensor* targets, const std::int64_t* out_counts,
                               const velo_tensor* out);
void submit(core::stream& on, const dispatch_request& what);

}  // namespace velo::comm
