// cross_entropy in plain loops and double: the reference for the other kernels.
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
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double x = to_float(s.logits[i]);
    if (std::isnan(x)) return to_float(s.logits[i]);
    largest = std::max(largest, x);
  }
  if (std::isinf(largest)) return static_cast<float>(largest);
  double sum = 0;
  for (std::int64_t i = 0; i < s.n; ++i) sum += std::exp(to_float(s.logits[i]) - largest);
  return static_cast<float>(largest + std::log(sum));
}

template <class T>
void backward(const cross_entropy_backward_row<T>& s) {
  const double total = s.spread == nullptr ? 1 : s.total;
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double p = std::exp(static_cast<double>(to_float(s.logits[i])) - s.lse);
    double target = i == s.target ? 1 : 0;
    if (s.spread != nullptr) target = s.spread[i] + (i == s.target ? s.hit : 0.0);
    simd::assign(s.dlogits[i], (p * total - target) * s.dloss);
  }
}

template <class T>
double weighted_sum(const cross_entropy_weighted_row<T>& s) {
  double sum = 0;
  for (std::int64_t i = 0; i < s.n; ++i)
    sum += static_cast<double>(to_float(s.logits[i])) * s.weights[i];
  return sum;
}

}  // namespace

extern const cross_entropy_kernels cross_entropy = {
    {log_sum<float>, log_sum<simd::bf16>, log_sum<simd::f16>},
    {backward<float>, backward<simd::bf16>, backward<simd::f16>},
    {weighted_sum<float>, weighted_sum<simd::bf16>, weighted_sum<simd::f16>}};

}  // namespace velo::ops::reference
