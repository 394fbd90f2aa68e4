// The fused norms in plain loops with double sums: the reference for the other kernels, and the
// kernel of optimization level 0. The norm itself is that of norm_ref.hpp, on a row of floats.
#include "ops/norm/dropout_add_norm.hpp"

#include "ops/norm/norm_ref.hpp"

namespace velo::ops::reference {
namespace {

using simd::to_float;

float multiplier(const add_norm_terms& by, std::int64_t r, std::int64_t i) {
  if (by.rule == nullptr) return 1;
  const std::uint64_t row = by.first + static_cast<std::uint64_t>(r) * by.pitch;
  return simd::dropout_multiplier(*by.rule, row + static_cast<std::uint64_t>(i));
}
double scale_of_row(const add_norm_terms& by, std::int64_t r) {
  return by.rowscale == nullptr ? 1 : by.rowscale[r];
}
double scale_of_column(const add_norm_terms& by, std::int64_t i) {
  return by.layerscale == nullptr ? 1 : by.layerscale[i];
}

template <bool Centered, class T, class Z>
void forward(const dropout_add_norm_slice<T, Z>& s) {
  const std::int64_t n = s.by.n;
  for (std::int64_t r = 0; r < s.by.rows; ++r) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = r * n + i;
      const double by = multiplier(s.by, r, i);
      double z = to_float(s.x[at]) * scale_of_row(s.by, r) * scale_of_column(s.by, i) * by;
      if (s.residual != nullptr) z += static_cast<double>(to_float(s.residual[at]));
      s.by.scratch[i] = static_cast<float>(z);
      if (s.z != nullptr) simd::assign(s.z[at], z);
      if (s.mask != nullptr) s.mask[at] = by != 0;
    }
    normalize<Centered>(norm_rows<float, T>{
        s.by.scratch, s.by.gamma, s.beta, s.y + r * n, s.mean == nullptr ? nullptr : s.mean + r,
        s.rstd == nullptr ? nullptr : s.rstd + r, 1, n, s.epsilon, false});
  }
}

template <bool Centered, class T, class Z>
void backward(const dropout_add_norm_backward_slice<T, Z>& s) {
  const std::int64_t n = s.by.n;
  for (std::int64_t r = 0; r < s.by.rows; ++r) {
    normalize_backward<Centered>(norm_gradient_rows<T, Z, float>{
        s.dy + r * n, s.z + r * n, s.by.gamma, s.mean == nullptr ? nullptr : s.mean + r, s.rstd + r,
        s.by.scratch, s.dgamma, s.dbeta, 1, n, false});
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = r * n + i;
      const double row = scale_of_row(s.by, r), column = scale_of_column(s.by, i);
      double d = s.by.scratch[i];
      if (s.dz != nullptr) d += static_cast<double>(to_float(s.dz[at]));
      const double kept = d * multiplier(s.by, r, i);
      if (s.x != nullptr) {
        const double term = kept * to_float(s.x[at]);
        if (s.dlayerscale != nullptr)
          s.dlayerscale[i] = static_cast<float>(s.dlayerscale[i] + term * row);
        sum += term * column;
      }
      if (s.dresidual != nullptr) simd::assign(s.dresidual[at], d);
      simd::assign(s.dx[at], kept * row * column);
    }
    if (s.drowscale != nullptr)
      s.drowscale[r] = static_cast<float>(sum + (s.accumulate ? s.drowscale[r] : 0.0f));
  }
}

using simd::bf16;
using simd::f16;

template <bool Centered>
constexpr dropout_add_norm_pair both = {
    {forward<Centered, float, float>, forward<Centered, bf16, bf16>, forward<Centered, bf16, float>,
     forward<Centered, f16, f16>, forward<Centered, f16, float>},
    {backward<Centered, float, float>, backward<Centered, bf16, bf16>,
     backward<Centered, bf16, float>, backward<Centered, f16, f16>,
     backward<Centered, f16, float>}};

template <class T>
void normalize_any(bool centered, const norm_rows<float, T>& s) {
  centered ? normalize<true>(s) : normalize<false>(s);
}

}  // namespace

void normalize_floats(bool centered, const norm_rows<float, float>& s) {
  normalize_any(centered, s);
}
void normalize_floats(bool centered, const norm_rows<float, simd::bf16>& s) {
  normalize_any(centered, s);
}
void normalize_floats(bool centered, const norm_rows<float, simd::f16>& s) {
  normalize_any(centered, s);
}

extern const dropout_add_norm_kernels dropout_add_norm = {both<false>, both<true>, add_columns};

}  // namespace velo::ops::reference
