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

template <class T>
void values(const router_values<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    const float value = s.scores == nullptr ? simd::to_float(s.logits[i])
                                            : s.scores[i] + (s.bias == nullptr ? 0 : s.bias[i]);
    s.values[i] = std::isnan(value) ? -INFINITY : value;
  }
}

void largest(const router_largest& s) {
  for (std::int64_t j = 0; j < s.count; ++j) {
    s.found[j] = -INFINITY, s.places[j] = -1;
    for (std::int64_t i = 0; i < s.n; ++i) {
      if (std::isnan(s.values[i])) continue;
      if (s.places[j] >= 0 && !(s.values[i] > s.found[j])) continue;
      s.found[j] = s.values[i], s.places[j] = static_cast<std::int32_t>(i);
    }
    if (s.places[j] >= 0) s.values[s.places[j]] = NAN;
  }
}

void group_scores(const router_groups& s) {
  for (std::int64_t g = 0; g < s.groups; ++g) {
    float first = -INFINITY, second = -INFINITY;
    for (std::int64_t i = g * s.size; i < (g + 1) * s.size; ++i) {
      if (s.values[i] > first) {
        second = first, first = s.values[i];
      } else if (s.values[i] > second) {
        second = s.values[i];
      }
    }
    s.scores[g] = s.sums_two && s.size > 1 ? first + second : first;
  }
}

}  // namespace

extern const topk_router_kernels topk_router = {
    {scores<float>, scores<simd::bf16>, scores<simd::f16>},
    {gradient<float>, gradient<simd::bf16>, gradient<simd::f16>},
    {values<float>, values<simd::bf16>, values<simd::f16>},
    largest,
    group_scores};

}  // namespace velo::ops::reference
