// Combine: rows return to the ranks that dispatched them (dispatch.hpp). Each host sends one sum
// for each row.
//
// A rank sends the other hosts the targets and weights of its rows that went there. On each host,
// ranks send their rows to the owner's local rank. That rank adds the rows in the order of the
// targets, in float32, and sends the sums to the owners, which add the hosts' sums in the order of
// the hosts and round once. If a host has a single row, it crosses unchanged and its owner applies
// the weight: no more bytes cross than without sums, and the bits are the same.
//
// Cost between hosts: 8 bytes for each host; for each row and each other host with targets of it,
// the targets and weights, and 4 bytes an element (a single row: its own bytes). Memory: the rows
// of two hosts, and the sums.
#pragma once

#include "comm/experts/rows.hpp"

namespace velo::comm {

struct combine_request {
  routing to;  // routing of the rows of `out`, with the dtype of `in`
  const char* in;
  blocks in_blocks;      // elements for each rank
  const float* weights;  // one for each target; nullptr: all are 1
  char* out;
  velo_dtype out_dtype;
};

// Throws as the C function does.
combine_request combine_call(group& inside, group& across, const velo_tensor* in,
                             const std::int64_t* in_counts, const velo_tensor* targets,
                             const velo_tensor* weights, const velo_tensor* out);
void submit(core::stream& on, const combine_request& what);

}  // namespace velo::comm
