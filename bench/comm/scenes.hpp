// Rows of bench_comm that are more than one collective.
#pragma once

#include <mpi.h>

#include <vector>

#include "bench/harness/result.hpp"

namespace velo::bench {

// Rows to the ranks that name them over two simulated hosts, by velo_group_dispatch and as copies
// by all_to_all_v, and back, by velo_group_combine with and without sums inside a host; eight
// threads of the caller.
std::vector<result> dispatch_rows(double seconds);

// How much of 64 all_reduces of 1 MiB is hidden behind arithmetic that takes as long, by OSU's
// formula; beside MPI_Iallreduce. Called by all processes; the rows are rank 0's.
std::vector<result> overlap_rows(MPI_Op bf16_sum);

// The exposed time of gradient buckets in the learned order, beside the best order; two threads.
std::vector<result> bucket_rows();

// Sums and averages of subnormal numbers, beside those of normal ones; two threads.
std::vector<result> subnormal_rows();

// The cost of a call's signature.
std::vector<result> signature_rows();

}  // namespace velo::bench
