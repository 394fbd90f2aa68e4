// Parts that the rows of inside.hpp share.
#pragma once

#include "tests/faults/inside.hpp"

namespace velo::testing {

constexpr std::uint64_t too_much = std::uint64_t{64} << 20;  // for the scene's pool
constexpr std::int64_t deadline = std::int64_t{20} * 1000000000;

velo_status call_kernel(velo_stream on, float first);       // the scene's; first: y[0]
velo_status allocate(velo_pool pool, std::uint64_t bytes);  // a block, freed at once
// A block through an allocator, freed at once. VELO_ERR_MEMORY where it has none.
velo_status allocate_through(const velo_allocator& allocator, std::uint64_t bytes);
velo_allocator allocator_of(velo_adaptor adaptor);
// A region with one output; its function meddles as "restore".
velo_status add_region(velo_recompute to, std::uint64_t bytes);

void open_peer(scene& s);                           // a second context with a queue; no group
void open_local_groups(scene& s);                   // of both contexts
void make_schedule(scene& s, std::uint32_t flags);  // 1F1B of two ranks; no executor

inline std::set<std::string> with(std::set<std::string> some,
                                  std::initializer_list<const char*> more) {
  some.insert(more.begin(), more.end());
  return some;
}

std::vector<inside_row> memory_inside_rows();
std::vector<inside_row> comm_inside_rows();
std::vector<inside_row> executor_inside_rows();

}  // namespace velo::testing
