// Updates of one parameter or of a list by the kernels of apply_fused_adamw: the checks of their
// tensors against each other, and their slices.
//
// One parallel region covers all parameters. They lie one after the other in a range of elements,
// each at a multiple of 64, and that range is cut into equal slices: a slice holds a part of a
// large parameter, or many small ones. Every element is updated by itself, so a list has the bits
// of single updates. A list costs 8 bytes of scratch memory a parameter.
#pragma once

#include "ops/operator/definition.hpp"
#include "ops/optimizer/apply_fused_adamw.hpp"

namespace velo::ops {

// Arrays of `count` tensors; 1 for the update of one parameter.
struct adamw_lists {
  std::int64_t count;
  const velo_tensor* param;
  const velo_tensor* grad;
  const velo_tensor* m;
  const velo_tensor* v;
  const velo_tensor* master = nullptr;  // this and the next two: or nullptr
  const velo_tensor* v_max = nullptr;
  const velo_tensor* ema = nullptr;
};

// Refuses a tensor without the shape of the parameter at its place, and a v without the dtype of
// its m. `listed`: the name of such a tensor says its place, "args.grad[3].shape".
void require_update(const adamw_lists& lists, bool listed);

// The tensors of a list, nullptr for a list left out. It must have as many as `param` has.
const velo_tensor* tensors_beside(const velo_tensors* list, const char* field,
                                  const velo_tensors& param);

// A list that the update reads and writes, which a caller who asks for shapes may leave out.
const velo_tensors& require_list(const velo_tensors* list, const char* field);

// The factors of the moments; the others are those of the operator.
template <class Args>
adamw_factors moment_factors(const Args& a) {
  adamw_factors by{};
  by.beta1 = static_cast<float>(a.beta1);
  by.one_minus_beta1 = static_cast<float>(1 - a.beta1);
  by.beta2 = static_cast<float>(a.beta2);
  by.one_minus_beta2 = static_cast<float>(1 - a.beta2);
  by.epsilon = static_cast<float>(a.epsilon);
  return by;
}

void update(const adamw_lists& lists, const adamw_factors& by,
            const apply_fused_adamw_kernels& kernels, core::execution& on);

}  // namespace velo::ops
