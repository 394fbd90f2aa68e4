// Memory that runs out on demand, for everybody in the process or for one thread.
//
// A program that links failing_memory.cpp gets its malloc: it counts blocks, and fails on demand,
// for the tests, for velo and its worker threads, and for the libraries below it. Sanitizers stand
// in for malloc themselves, so that no program has both.
#pragma once

#include <cstdint>

namespace velo::testing {

// Which allocations fail, from the n-th on: it alone, all, or each n-th.
enum class failure_shape { never, once, from_then_on, each };

void begin_failing(failure_shape how, int n);
void begin_failing_here(failure_shape how, int n);  // allocations of the calling thread alone

// Allocations succeed again. Returns whether one failed.
bool end_failing();

// Allocations since the last begin, unless each n-th fails.
int allocations();

// Blocks that are allocated now.
std::int64_t live_blocks();

}  // namespace velo::testing
