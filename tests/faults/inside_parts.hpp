// What the scene and the rows of inside.hpp share.
#pragma once

#include "tests/faults/inside.hpp"
#include "tests/faults/rows.hpp"

namespace velo::testing {

extern const velo_allocator host_memory;  // functions "allocate" and "deallocate"
constexpr std::int64_t side = 256;        // of the pack's matrix
constexpr std::uint64_t too_much = std::uint64_t{64} << 20;  // for the pool

// The scene's functions each call meddle_in with their name; a row says which of them meddles.
extern const char* meddles_in;
void meddle_in(const char* function);

void register_kernel(world& w);  // "of_host", function "kernel"; it fails where y[0] < 0
velo_status call_kernel(velo_stream on, float first);  // first: y[0]

std::vector<inside_row> memory_inside_rows();
std::vector<inside_row> comm_inside_rows();
std::vector<inside_row> executor_inside_rows();

}  // namespace velo::testing
