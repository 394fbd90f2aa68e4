// What the gates of a mixture of experts share: the scores of a token, and checks of its choices.
//
// Cost: that of the kernel, which reads the token's logits.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/experts/topk_router.hpp"
#include "ops/operator/tensor.hpp"

namespace velo::ops {

// The scores of a row, by the reference where numbers are not finite, so that all kernels agree.
template <class T>
void score(const topk_router_kernels& kernels, const router_row<T>& row) {
  kernels.scores(row);
  if (!std::isfinite(*row.largest) || !std::isfinite(*row.sum)) reference::topk_router.scores(row);
}

// The expert of a choice, which -1 - expert names where it was dropped.
inline std::int64_t expert_of(std::int32_t choice) {
  return choice < 0 ? -1 - std::int64_t{choice} : choice;
}

// Refuses choices of experts that there are not.
inline void require_choices(const velo_tensor& indices, std::int64_t experts) {
  const auto* at = data<const std::int32_t>(&indices);
  for (std::int64_t i = 0; i < numel(indices); ++i) {
    if (at[i] >= -experts && at[i] < experts) continue;
    core::fail(VELO_ERR_ARGUMENT, "args.indices",
               core::concat("indices in [", -experts, ", ", experts, ")"),
               core::concat(at[i], " in element ", i));
  }
}

}  // namespace velo::ops
