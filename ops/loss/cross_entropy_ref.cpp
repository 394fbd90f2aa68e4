// cross_entropy in plain loops and double: the truth the other kernels are held to.
#include <algorithm>
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/loss/cross_entropy.hpp"

namespace velo::ops::reference {
namespace {

using simd::to_float;

template <class T>
float log_sum(const cross_entropy_row<T>& s) {
  double largest = -HUGE_VAL;
  for (std::int64_t i = 0; i < s.n; ++i) largest = std::max<double>(largest, to_float(s.logits[i]));
  if (std::isinf(largest)) return static_cast<float>(largest);
  double sum = 0;
  for (std::int64_t i = 0; i < s.n; ++i) sum += std::exp(to_float(s.logits[i]) - largest);
  return static_cast<float>(largest + std::log(sum));
}

template <class T>
void backward(const cross_entropy_backward_row<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double p = std::exp(static_cast<double>(to_float(s.logits[i])) - s.lse);
    simd::assign(s.dlogits[i], (p - (i == s.target ? 1 : 0)) * s.dloss);
  }
}

}  // namespace

float log_sum_exp(const cross_entropy_row<float>& s) {
  return log_sum(s);
}
float log_sum_exp(const cross_entropy_row<simd::bf16>& s) {
  return log_sum(s);
}
void cross_entropy_backward(const cross_entropy_backward_row<float>& s) {
  backward(s);
}
void cross_entropy_backward(const cross_entropy_backward_row<simd::bf16>& s) {
  backward(s);
}

}  // namespace velo::ops::reference
