// A rank's product of quantized operands, before the sum over ranks: floats by a weight of int8 or
// int4 that has scales, or int8 by int8 with a scale of the sums.
//
// The loops are those of weight_quant_matmul and quant_grouped_matmul, so that the bits are theirs.
// They make floats, or panels, of some columns of the weight for all rows: such a product is cut
// into slices of columns (column_slices.hpp), which read each integer once. A scale of shape [1]
// holds for all columns: it is repeated in scratch. Invariant: fields of one form of quantization
// are refused beside those of the other, and beside a weight that is not quantized. Cost: 2 m n k
// operations, or one read of the weight.
#pragma once

#include "ops/quant/integer_matmul.hpp"
#include "ops/quant/weight_matrix.hpp"
#include "sched/overlap/product.hpp"

namespace velo::sched {

// The fields of a call; those that an operator lacks are nullptr or 0.
struct quantized_operands {
  const velo_tensor *x, *weight, *bias;
  velo_pack packed;
  bool transposed;
  const velo_tensor *scale, *offset;  // of a quantized weight
  std::int64_t group_size;
  const velo_tensor *dequant_scale, *per_token_scale;  // of int8 by int8
};

enum class quantization { none, weight, integers };

// The mode and the sizes of the weight, which infer passes to run.
struct quantized_sizes {
  quantization how;
  ops::weight_sizes weight;
};

// output: the dtype of the product of int8 by int8.
quantized_sizes require_quantized(const quantized_operands& by, velo_dtype output,
                                  overlap_problem& all);

// A rank's product. bias: of a quantized weight, added before the product is rounded; nullptr:
// none. What is repeated lies in `scratch`.
class quantized_product {
 public:
  quantized_product(const quantized_operands& by, const quantized_sizes& sizes,
                    const overlap_problem& all, const float* bias, core::arena& scratch);

  // Columns from a multiple of pack_columns on, all rows, to [m][count]. Inside a turn.
  struct column_range {
    std::int64_t first, count;
  };
  void multiply(const column_range& columns, void* to, overlap_kernel::way how,
                core::execution& turn) const;

 private:
  const quantization how_;
  const ops::gemm_problem& of_;
  const float* const bias_;
  const void* const x_;
  ops::weight_matrix weight_{};
  ops::integer_matmul integers_{};
};

// The whole product, inside a turn and a scope of scratch.
void multiply_quantized(const quantized_operands& by, const quantized_sizes& sizes,
                        const overlap_problem& all, const float* bias, void* to,
                        overlap_kernel::way how, core::execution& turn);

// The cost of the product by the dtype that it is multiplied in; what is sent is not counted.
void count_product(const quantized_operands& by, quantization how, const overlap_problem& all,
                   ops::op_cost& cost);

}  // namespace velo::sched
