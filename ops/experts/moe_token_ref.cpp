// Rows of tokens in plain loops with double sums: the reference for the other kernels, and the
// kernel of optimization level 0.
#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/experts/moe_token.hpp"

namespace velo::ops::reference {
namespace {

void copy_row(const row_copy& s) {
  std::memcpy(s.to, s.from, static_cast<std::size_t>(s.bytes));
}

double weight_of(const token_rows& at, std::int64_t j) {
  return at.weights == nullptr ? 1 : at.weights[j];
}

template <class T>
void sum(const token_sum<T>& s) {
  for (std::int64_t i = 0; i < s.at.n; ++i) {
    double all = s.at.count == 0 ? 0.0 : -0.0;
    for (std::int64_t j = 0; j < s.at.count; ++j)
      all += weight_of(s.at, j) * simd::to_float(s.row(j)[i]);
    simd::assign(s.y[i], all);
  }
}

template <class T>
void scale(const token_scale<T>& s) {
  for (std::int64_t j = 0; j < s.at.count; ++j)
    for (std::int64_t i = 0; i < s.at.n; ++i)
      simd::assign(s.dpermuted[s.at.rows[j] * s.at.n + i],
                   weight_of(s.at, j) * simd::to_float(s.dy[i]));
}

template <class T>
void dots(const token_dots<T>& s) {
  for (std::int64_t j = 0; j < s.at.count; ++j) {
    double all = 0;
    for (std::int64_t i = 0; i < s.at.n; ++i)
      all += static_cast<double>(simd::to_float(s.permuted[s.at.rows[j] * s.at.n + i])) *
             simd::to_float(s.dy[i]);
    s.dots[j] = static_cast<float>(all);
  }
}

}  // namespace

extern const moe_token_kernels moe_token = {copy_row,
                                            {sum<float>, sum<simd::bf16>, sum<simd::f16>},
                                            {scale<float>, scale<simd::bf16>, scale<simd::f16>},
                                            {dots<float>, dots<simd::bf16>, dots<simd::f16>}};

}  // namespace velo::ops::reference
