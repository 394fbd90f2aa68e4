// A tensor of integers with scales as a weight: checks, and what the loops need to know.
#pragma once

#include <cstdint>

#include "core/failure.hpp"
#include "ops/operator/tensor.hpp"
#include "ops/quant/weight_quant.hpp"

namespace velo::ops {

// A matrix with a scale for each n, or for each group of k and each n.
struct weight_matrix {
  const std::uint8_t* data;
  bool int4;
  bool transposed;  // stored [n][k]
  std::int64_t k, n;
  weight_scales scales;

  std::int64_t row_bytes() const {
    const std::int64_t row = transposed ? k : n;
    return int4 ? row / 2 : row;
  }
  std::int64_t bytes() const { return (transposed ? n : k) * row_bytes(); }
};

// The sizes of a weight: matrices of each of `experts`, which are 1 where the tensor has two
// dimensions, and how its depth is cut into groups.
struct weight_sizes {
  std::int64_t experts, k, n, groups;
  bool int4;
};

// The tensors of a weight and how the caller spells them.
struct weight_fields {
  const velo_tensor* weight;
  const velo_tensor* scale;
  const velo_tensor* offset;  // or NULL
  bool transposed;
  bool experts;  // all have a leading dimension more
  const char *weight_name = "weight", *scale_name = "scale", *offset_name = "offset";
};

// Checks the tensors against each other; scales may have the dtype of x.
weight_sizes sizes_of(const weight_fields& fields, velo_dtype x);

// The matrix of an expert.
weight_matrix matrix_of(const weight_fields& fields, const weight_sizes& sizes,
                        std::int64_t expert);

}  // namespace velo::ops
