// Parts that the rows of inside.hpp share.
#pragma once

#include "tests/faults/inside.hpp"

namespace velo::testing {

constexpr std::uint64_t too_much = std::uint64_t{64} << 20;  // for the scene's pool

velo_status call_kernel(velo_stream on, float first);  // the scene's; first: y[0]

std::vector<inside_row> memory_inside_rows();
std::vector<inside_row> comm_inside_rows();
std::vector<inside_row> executor_inside_rows();

}  // namespace velo::testing
