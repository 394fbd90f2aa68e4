// The norms in plain loops with double sums, as templates over centering (layer_norm) and element
// types.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/simd/scalar.hpp"
#include "ops/norm/norm.hpp"

namespace velo::ops::reference {

template <bool Centered, class X, class T>
void normalize(const norm_rows<X, T>& s) {
  using simd::to_float;
  const auto n = static_cast<double>(s.n);
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const X* x = s.x + r * s.n;
    double mean = 0, squares = 0;
    for (std::int64_t i = 0; Centered && i < s.n; ++i) mean += static_cast<double>(to_float(x[i]));
    mean /= Centered ? n : 1;
    for (std::int64_t i = 0; i < s.n; ++i) {
      const double centered = to_float(x[i]) - mean;
      squares += centered * centered;
    }
    const double rstd = !Centered && s.known_rstd != nullptr
                            ? static_cast<double>(s.known_rstd[r])
                            : 1 / std::sqrt(squares / n + s.epsilon);
    if (Centered && s.mean != nullptr) s.mean[r] = static_cast<float>(mean);
    if (s.rstd != nullptr) s.rstd[r] = static_cast<float>(rstd);
    for (std::int64_t i = 0; i < s.n; ++i) {
      const double scaled = (to_float(x[i]) - mean) * rstd * s.gamma[i];
      simd::assign(s.y[r * s.n + i], Centered ? scaled + s.beta[i] : scaled);
    }
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
    double sum = 0, dot = 0;
    for (std::int64_t i = 0; i < s.n; ++i) {
      const double g = static_cast<double>(to_float(dy[i])) * s.gamma[i];
      sum += g;
      dot += g * (to_float(x[i]) - mean);
    }
    const double slope = rstd * rstd * rstd * dot / n, shift = Centered ? rstd * sum / n : 0;
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
    add_columns};

}  // namespace velo::ops::reference
