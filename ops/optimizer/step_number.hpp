// The number of an optimizer's step and its learning rate: attributes, or elements of tensors.
//
// A number in a tensor is data: it is read when the update runs, before anything is written.
#pragma once

#include <cstdint>

#include "ops/operator/definition.hpp"
#include "ops/operator/indices.hpp"

namespace velo::ops {

// The largest `step` as an integer, too: beyond it a double skips numbers.
inline constexpr std::int64_t last_step = std::int64_t{1} << 52;

template <class Args>
double step_of(const Args& a) {
  if (a.step_tensor == nullptr) return static_cast<double>(a.step);
  const std::int64_t step = index_reader(*a.step_tensor)[0];
  if (step < 1 || step > last_step) {
    core::fail(VELO_ERR_ARGUMENT, "args.step_tensor",
               core::concat("an integer in [1, ", last_step, "]"), core::number(step));
  }
  return static_cast<double>(step);
}

// The tensors of a step are scalars, and a decay of 1 would divide by 0.
template <class Args>
void require_step(const Args& a) {
  if (a.step_tensor != nullptr) require_rank(*a.step_tensor, "step_tensor", 0, 0);
  if (a.beta1 >= 1 || a.beta2 >= 1) {
    core::fail(VELO_ERR_ARGUMENT, a.beta1 >= 1 ? "args.beta1" : "args.beta2", "less than 1", "1");
  }
}

}  // namespace velo::ops
