// The product as its definition says, an element at a time with a double sum.
#include <algorithm>
#include <cassert>

#include "core/simd/scalar.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/gemm/kernel/gemm_kernels.hpp"
#include "ops/gemm/output.hpp"

namespace velo::ops {
namespace {

double element(const void* data, element_type type, std::int64_t index) {
  if (type == element_type::f32) return static_cast<const float*>(data)[index];
  if (type == element_type::f16) return simd::to_float(static_cast<const simd::f16*>(data)[index]);
  return simd::to_float(static_cast<const simd::bf16*>(data)[index]);
}

void set_element(void* data, element_type type, std::int64_t index, double value) {
  if (type == element_type::f32) return simd::assign(static_cast<float*>(data)[index], value);
  if (type == element_type::f16) return simd::assign(static_cast<simd::f16*>(data)[index], value);
  simd::assign(static_cast<simd::bf16*>(data)[index], value);
}

double sum_of(const gemm_problem& p, std::int64_t i, std::int64_t j) {
  const packed_matrix* b = p.packed_b;
  const packed_matrix::column column = b != nullptr ? b->at(j) : packed_matrix::column();
  double sum = 0;
  for (std::int64_t k = 0; k < p.k; ++k) {
    const double x = element(p.a, p.type, p.transpose_a ? k * p.lda + i : i * p.lda + k);
    const double y = b != nullptr
                         ? column[k]
                         : element(p.b, p.type, p.transpose_b ? j * p.ldb + k : k * p.ldb + j);
    sum += x * y;
  }
  return sum;
}

// The columns of a row by blocks, whose sums the gate finishes as it does those of other kernels.
void gated_reference(const gemm_problem& p, const core::parallel& threads) {
  constexpr std::int64_t block = 64;
  const std::int64_t half = p.n / 2;
  threads(p.m, [&](std::int64_t i, int) {
    for (std::int64_t first = 0; first < half; first += block) {
      const std::int64_t end = std::min(first + block, half);
      float gate[block], factor[block];
      for (std::int64_t j = first; j < end; ++j) {
        gate[j - first] = static_cast<float>(sum_of(p, i, j));
        factor[j - first] = static_cast<float>(sum_of(p, i, half + j));
      }
      gated_block sums = gated_output(p, i, first);
      sums.gate = gate, sums.factor = factor;
      sums.rows = 1, sums.columns = static_cast<int>(end - first);
      p.epilogue.gate.finish(sums);
    }
  });
}

}  // namespace

void gemm_reference(const gemm_problem& p, const core::parallel& threads) {
  assert(p.rows_of_a.write == nullptr && p.c_layout == matrix_layout::rows &&
         p.epilogue.addends.matrices == nullptr && p.epilogue.second.data == nullptr &&
         p.epilogue.copies == nullptr);
  if (p.epilogue.gate.finish != nullptr) return gated_reference(p, threads);
  const residual_matrix& residual = p.epilogue.residual;
  threads(p.m, [&](std::int64_t i, int) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      const std::int64_t index = i * p.ldc + j;
      double sum = sum_of(p, i, j);
      if (residual.data != nullptr) {
        const std::int64_t row = residual.rows != nullptr ? residual.rows[i] : i * residual.ld;
        const element_type type = residual.in_f32 ? element_type::f32 : p.c_type;
        sum += element(residual.data, type, row + (residual.one_column ? 0 : j));
      }
      if (p.epilogue.bias != nullptr) sum += p.epilogue.bias[j];
      if (p.epilogue.accumulate) sum += element(p.c, p.c_type, index);
      set_element(p.c, p.c_type, index, sum);
    }
  });
}

namespace reference {
extern const gemm_kernels gemm{};
}

}  // namespace velo::ops
