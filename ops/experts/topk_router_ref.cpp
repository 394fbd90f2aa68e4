// The router's scores and their gradient in plain loops with double sums: the reference for the
// other kernels, and the kernel of optimization level 0.
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/experts/topk_router.hpp"

namespace velo::ops::reference {
namespace {

double wide(float x) {
  return x;
}

template <class T>
void scores(const router_row<T>& s) {
  double largest = -INFINITY, sum = 0;
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double x = wide(simd::to_float(s.logits[i]));
    if (x > largest || std::isnan(x)) largest = x;
  }
  for (std::int64_t i = 0; i < s.n; ++i)
    sum += std::exp(wide(simd::to_float(s.logits[i])) - largest);
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double x = wide(simd::to_float(s.logits[i]));
    s.scores[i] =
        static_cast<float>(s.sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x - largest) / sum);
  }
  *s.largest = static_cast<float>(largest);
  *s.sum = static_cast<float>(sum);
}

// Relative to the gradient of the largest score: scores are rounded, so that their sum is not 1.
template <class T>
void gradient(const router_gradient_row<T>& s) {
  std::int64_t most = 0;
  for (std::int64_t i = 1; i < s.n; ++i)
    if (s.scores[i] > s.scores[most]) most = i;
  const double pivot = s.n == 0 ? 0 : wide(s.dscores[most]);
  double mean = 0;
  for (std::int64_t i = 0; !s.sigmoid && i < s.n; ++i)
    mean += wide(s.scores[i]) * (wide(s.dscores[i]) - pivot);
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double score = wide(s.scores[i]), d = wide(s.dscores[i]);
    double x = score * (d - pivot - mean + wide(s.dlse));
    if (s.sigmoid) {
      x = d * score * (1 - score);
      if (s.dlse != 0)
        x += wide(s.dlse) * std::exp(wide(simd::to_float(s.logits[i])) - wide(s.lse));
    }
    simd::assign(s.dlogits[i], x);
  }
}

}  // namespace

extern const topk_router_kernels topk_router = {
    {scores<float>, scores<simd::bf16>, scores<simd::f16>},
    {gradient<float>, gradient<simd::bf16>, gradient<simd::f16>}};

}  // namespace velo::ops::reference
