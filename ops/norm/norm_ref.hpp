// The norms in plain loops with double sums, as templates over centering (layer_norm) and element
// types.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/simd/scalar.hpp"
#include "ops/norm/norm.hpp"

namespace velo::ops::reference {

// The sum of a row's elements (layer_norm only), and the sum of the squares around their mean.
struct row_totals {
  double sum = 0, squares = 0;
};
template <bool Centered, class X>
row_totals sums_of(const X* x, std::int64_t n) {
  using simd::to_float;
  row_totals all;
  for (std::int64_t i = 0; Centered && i < n; ++i) all.sum += static_cast<double>(to_float(x[i]));
  const double mean = Centered && n != 0 ? all.sum / static_cast<double>(n) : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double centered = to_float(x[i]) - mean;
    all.squares += centered * centered;
  }
  return all;
}

template <bool Centered, class T>
void sum_rows(const norm_sums<T>& s) {
  constexpr int count = Centered ? 2 : 1;
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const row_totals all = sums_of<Centered>(s.x + r * s.n, s.n);
    s.sums[r * count] = all.squares;
    if (Centered) s.sums[r * count + 1] = all.sum;
  }
}

template <bool Centered, class X, class T>
void normalize(const norm_rows<X, T>& s) {
  using simd::to_float;
  const auto n = static_cast<double>(s.n);
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const X* x = s.x + r * s.n;
    row_statistics of;
    if (s.known != nullptr) {
      of = s.known[r];
    } else {
      const row_totals all = sums_of<Centered>(x, s.n);
      of = {all.sum / n, 1 / std::sqrt(all.squares / n + s.epsilon)};
    }
    const double mean = of.mean, rstd = of.rstd;
    if (Centered && s.mean != nullptr) s.mean[r] = static_cast<float>(mean);
    if (s.rstd != nullptr) s.rstd[r] = static_cast<float>(rstd);
    for (std::int64_t i = 0; i < s.n; ++i) {
      const double scaled = (to_float(x[i]) - mean) * rstd * s.gamma[i];
      simd::assign(s.y[r * s.n + i], Centered ? scaled + s.beta[i] : scaled);
    }
  }
}

// The sums over a row.
template <bool Centered, class T, class X>
row_gradient_terms gradient_sums_of(const T* dy, const X* x, const float* gamma, double mean,
                                    std::int64_t n) {
  using simd::to_float;
  row_gradient_terms all = {0, 0};
  for (std::int64_t i = 0; i < n; ++i) {
    const double g = static_cast<double>(to_float(dy[i])) * gamma[i];
    if (Centered) all.sum += g;
    all.dot += g * (to_float(x[i]) - mean);
  }
  return all;
}

template <bool Centered, class T>
void sum_gradient_rows(const norm_gradient_sums<T>& s) {
  constexpr int count = Centered ? 2 : 1;
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const row_gradient_terms all = gradient_sums_of<Centered>(
        s.dy + r * s.n, s.x + r * s.n, s.gamma, Centered ? static_cast<double>(s.mean[r]) : 0, s.n);
    s.sums[r * count] = all.dot;
    if (Centered) s.sums[r * count + 1] = all.sum;
  }
}

template <bool Centered, class T, class X, class D>
void normalize_backward(const norm_gradient_rows<T, X, D>& s) {
  using simd::to_float;
  const auto n = static_cast<double>(s.n);
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const X* x = s.x + r * s.n;
    const T* dy = s.dy + r * s.n;
    const double rstd = s.rstd[r], mean = Centered ? static_cast<double>(s.mean[r]) : 0;
    row_gradient_terms of;
    if (s.known != nullptr) {
      of = s.known[r];
    } else {
      of = gradient_sums_of<Centered>(dy, x, s.gamma, mean, s.n);
      of = {of.dot / n, of.sum / n};
    }
    const double slope = rstd * rstd * rstd * of.dot, shift = rstd * of.sum;
    for (std::int64_t i = 0; i < s.n; ++i) {
      const double g = to_float(dy[i]), centered = to_float(x[i]) - mean;
      if (s.dgamma != nullptr) {
        s.dgamma[i] = static_cast<float>(s.dgamma[i] + g * centered * rstd);
        if (Centered) s.dbeta[i] = static_cast<float>(s.dbeta[i] + g);
      }
      simd::assign(s.dx[r * s.n + i], rstd * g * s.gamma[i] - shift - centered * slope);
    }
  }
}

inline void add_columns(const norm_columns& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    double sum = s.accumulate ? s.sum[i] : 0;
    for (std::int64_t r = 0; r < s.rows; ++r) sum += s.partial[r * s.stride + i];
    s.sum[i] = static_cast<float>(sum);
  }
}

template <bool Centered>
constexpr norm_kernels norm = {
    {normalize<Centered, float, float>, normalize<Centered, simd::bf16, simd::bf16>,
     normalize<Centered, simd::f16, simd::f16>},
    {normalize_backward<Centered, float, float, float>,
     normalize_backward<Centered, simd::bf16, simd::bf16, simd::bf16>,
     normalize_backward<Centered, simd::f16, simd::f16, simd::f16>},
    add_columns,
    {sum_rows<Centered, float>, sum_rows<Centered, simd::bf16>, sum_rows<Centered, simd::f16>},
    {sum_gradient_rows<Centered, float>, sum_gradient_rows<Centered, simd::bf16>,
     sum_gradient_rows<Centered, simd::f16>}};

}  // namespace velo::ops::reference
