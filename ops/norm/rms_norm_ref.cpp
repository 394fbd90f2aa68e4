// rms_norm in plain loops with double sums: the reference for the other kernels, and the kernel of
// optimization level 0.
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/norm/rms_norm.hpp"

namespace velo::ops::reference {
namespace {

using simd::to_float;

template <class T>
void forward(const rms_norm_slice<T>& s) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const T* x = s.x + r * s.n;
    double squares = 0;
    for (std::int64_t i = 0; i < s.n; ++i)
      squares += static_cast<double>(to_float(x[i])) * to_float(x[i]);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(s.n) + s.epsilon);
    if (s.rstd != nullptr) s.rstd[r] = static_cast<float>(rstd);
    for (std::int64_t i = 0; i < s.n; ++i)
      simd::assign(s.y[r * s.n + i], to_float(x[i]) * rstd * s.gamma[i]);
  }
}

template <class T>
void backward(const rms_norm_backward_slice<T>& s) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const T* x = s.x + r * s.n;
    const T* dy = s.dy + r * s.n;
    const double rstd = s.rstd[r];
    double dot = 0;
    for (std::int64_t i = 0; i < s.n; ++i) {
      dot += static_cast<double>(to_float(dy[i])) * s.gamma[i] * to_float(x[i]);
    }
    const double slope = rstd * rstd * rstd * dot / static_cast<double>(s.n);
    for (std::int64_t i = 0; i < s.n; ++i) {
      const double g = to_float(dy[i]);
      const double xi = to_float(x[i]);
      if (s.dgamma != nullptr) s.dgamma[i] = static_cast<float>(s.dgamma[i] + g * xi * rstd);
      simd::assign(s.dx[r * s.n + i], rstd * g * s.gamma[i] - xi * slope);
    }
  }
}

void gain(const rms_norm_gain_columns& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    double sum = s.accumulate ? s.dgamma[i] : 0;
    for (std::int64_t r = 0; r < s.rows; ++r) sum += s.partial[r * s.stride + i];
    s.dgamma[i] = static_cast<float>(sum);
  }
}

}  // namespace

extern const rms_norm_kernels rms_norm = {
    {forward<float>, forward<simd::bf16>, forward<simd::f16>},
    {backward<float>, backward<simd::bf16>, backward<simd::f16>},
    gain};

}  // namespace velo::ops::reference
