// Rows back to the ranks that dispatch had them from (dispatch.hpp), those of one row as their sum,
// so that a sum crosses from another host once.
//
// A rank tells its peers on the other hosts the targets and weights of its rows that have been
// there. Ranks give the rows to the ranks of their host that stand in for those that get them;
// these add what they get for each row, in the order of its targets, in float32, and give it to
// their peers, who add the hosts' sums in the order of the hosts and round once. What is a row
// alone on its host crosses as it is, and is weighted where it arrives: no more bytes cross than of
// all rows apart, and the bits are the same.
//
// Cost, on the slow way: 8 bytes for each host; for each row and other host with targets of it,
// these and the weights, and 4 bytes an element (of narrower elements alone on a host, their own);
// memory for the rows of two hosts, and the sums.
#pragma once

#include "comm/experts/rows.hpp"

namespace velo::comm {

struct combination {
  routes to;  // of out's rows; the dtype is in's
  const char* in;
  std::vector<part> in_parts;  // elements for each rank
  const float* weights;        // of each target; nullptr: all are 1
  char* out;
  velo_dtype out_dtype;
};

// Throws as the C function says.
combination combine_call(group& inside, group& across, const velo_tensor* in,
                         const std::int64_t* in_counts, const velo_tensor* targets,
                         const velo_tensor* weights, const velo_tensor* out);
void submit(core::stream& on, const combination& what);

}  // namespace velo::comm
