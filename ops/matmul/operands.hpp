// The checks and choices that every operator of products shares: tensors as matrices, limits, the
// instruction set of a candidate, column sums.
#pragma once

#include <new>

#include "core/stream/execution.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/gemm/kernel/gemm_kernels.hpp"
#include "ops/operator/tensor.hpp"

namespace velo::ops {

// A tensor as a matrix: all dimensions but the last folded into rows.
struct folded {
  std::int64_t rows = 1, columns = 0;
  std::int64_t ld = 0;  // elements between rows
};
folded fold(const velo_tensor& t, const char* field);  // refuses strides that do not fold

void require_below_2_31(std::int64_t size, const char* field);

// The ISA that the engine runs at for a candidate.
core::isa isa_for(const gemm_kernels& candidate, element_type type, core::isa highest);
// Why a candidate does not multiply this type, or nullptr.
const char* reject_product(const kernel_entry& candidate, element_type type);

double flops_of(const gemm_problem& p);

// One product, or several at once, of one type; the problems are complete.
void multiply(const gemm_problem& p, const gemm_kernels& kernels, core::execution& on);
void multiply_groups(const gemm_problem* problems, std::int64_t count, const gemm_kernels& kernels,
                     core::execution& on);

// The products of a call, written one after another and multiplied at once.
class product_list {
 public:
  product_list(std::int64_t most, core::arena& scratch)
      : all_(scratch.take<gemm_problem>(static_cast<std::size_t>(most))) {}
  void add(const gemm_problem& p) { new (all_ + count_++) gemm_problem(p); }
  void multiply(const gemm_kernels& kernels, core::execution& on) const {
    multiply_groups(all_, count_, kernels, on);
  }

 private:
  gemm_problem* all_;
  std::int64_t count_ = 0;
};

// The sums of the columns of x[rows][columns] as a product with ones, into float32. `ones`: at
// least so many as there are rows.
gemm_problem column_sums(element_type type, const void* ones, const void* x, std::int64_t rows,
                         std::int64_t columns, std::int64_t ld);
const void* take_ones(element_type type, std::int64_t count, core::arena& scratch);

}  // namespace velo::ops
