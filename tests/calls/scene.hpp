// A world with one object of every kind, made over functions of the host that can do harm in the
// middle of a call: allocators, loops, logs, kernels, a pool's pressure.
//
// Each of these functions calls meddle_in with its name. Where `meddles_in` has that name,
// `meddling` runs, once.
#pragma once

#include <functional>

#include "tests/calls/world.hpp"

namespace velo::testing {

struct scene : world {
  scene();
  ~scene();
};

extern std::function<void()> meddling;  // empty: nothing happens
extern const char* meddles_in;
void meddle();
void meddle_in(const char* function);

extern const velo_allocator scene_allocator;  // functions "allocate" and "deallocate"
constexpr std::int64_t side = 256;            // of the pack's matrix

void register_kernel(world& w);  // "of_host", function "kernel"; it fails where y[0] < 0

}  // namespace velo::testing
