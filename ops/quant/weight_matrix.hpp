// A tensor of integers with scales as a weight: checks, and what the loops need to know.
#pragma once

#include <cstdint>

#include "core/failure.hpp"
#include "ops/operator/tensor.hpp"
#include "ops/quant/weight_quant.hpp"

namespace velo::ops {

// Columns of a panel of a pack: whole vectors, pairs of them, and panels of the product engine.
constexpr std::int64_t pack_columns = 96;

// A matrix with a scale for each n, or for each group of k and each n.
struct weight_matrix {
  const std::uint8_t* data;
  bool int4;
  bool transposed;  // stored [n][k]
  bool in_panels;   // of a pack: stored [n / pack_columns][k][pack_columns]
  std::int64_t k, n;
  std::int64_t ld;  // stored [k][ld], of which these are n columns
  weight_scales scales;

  std::int64_t bytes_of(std::int64_t elements) const { return int4 ? elements / 2 : elements; }
  // Between stored rows.
  std::int64_t row_bytes() const {
    return bytes_of(in_panels ? pack_columns : transposed ? k : ld);
  }
  std::int64_t bytes() const { return bytes_of(k * n); }
  // The byte of an element of a stored row.
  const std::uint8_t* byte_of(std::int64_t row, std::int64_t element) const {
    const std::int64_t panel = in_panels ? element / pack_columns : 0;
    return data + (panel * k + row) * row_bytes() + bytes_of(element - panel * pack_columns);
  }
};

// The sizes of a weight: matrices of each of `experts`, which are 1 where the tensor has two
// dimensions, and how its depth is cut into groups.
struct weight_sizes {
  std::int64_t experts, k, n, groups;
  bool int4;
  std::int64_t group = 1;  // of k; the last group may have less
};

// The tensors of a weight and how the caller spells them.
struct weight_fields {
  const velo_tensor* weight;  // NULL for a pack
  const velo_tensor* scale;
  const velo_tensor* offset;  // or NULL
  bool transposed;
  bool experts;  // all have a leading dimension more
  const char *weight_name = "weight", *scale_name = "scale", *offset_name = "offset";
  std::int64_t group_size = 0;  // of k; 0: groups of equal size
  bool single_scale = false;    // a scale of shape [1] is accepted; the caller repeats it n times
};

// Checks the tensors against each other; scales may have the dtype of x.
weight_sizes sizes_of(const weight_fields& fields, velo_dtype x);

// Checks scales and offsets and sets `groups`; the other sizes are known, as those of a pack.
void require_scales(const weight_fields& fields, velo_dtype x, weight_sizes& sizes);

// The matrix of an expert.
weight_matrix matrix_of(const weight_fields& fields, const weight_sizes& sizes,
                        std::int64_t expert);
// Some columns of a matrix, from a multiple of pack_columns on.
weight_matrix columns_of(const weight_matrix& all, std::int64_t first, std::int64_t count);
// The matrix of an expert whose integers are a pack's.
weight_matrix matrix_at(const std::uint8_t* integers, const weight_fields& fields,
                        const weight_sizes& sizes, std::int64_t expert);

}  // namespace velo::ops
