// The gated activations in plain loops and double: the reference for the other kernels.
#include "core/simd/scalar.hpp"
#include "ops/activation/function_ref.hpp"
#include "ops/activation/gated.hpp"

namespace velo::ops::reference {
namespace {

template <activation_function F, class T>
void forward(const gated_slice<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i)
    simd::assign(s.y[i], apply<F>(simd::to_float(s.gate[i])).value * simd::to_float(s.up[i]));
}

template <activation_function F, class T>
void backward(const gated_backward_slice<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    const value_and_slope f = apply<F>(simd::to_float(s.gate[i]));
    const double up = simd::to_float(s.up[i]);
    const double dy = simd::to_float(s.dy[i]);
    simd::assign(s.dgate[i], gradient<F>(dy * up, f));
    simd::assign(s.dup[i], dy * f.value);
  }
}

template <class T>
void silu_sums(const gated_block& b) {
  const auto sum_at = [](const float* sums, const float* bias, int j) {
    return static_cast<double>(sums[j]) + (bias == nullptr ? 0 : static_cast<double>(bias[j]));
  };
  for (std::int64_t i = 0; i < b.rows; ++i) {
    for (int j = 0; j < b.columns; ++j) {
      const double gate = sum_at(b.gate + i * b.ld, b.gate_bias, j);
      const double factor = sum_at(b.factor + i * b.ld, b.factor_bias, j);
      if (b.gate_before != nullptr) {
        simd::assign(static_cast<T*>(b.gate_before)[i * b.ld_before + j], gate);
        simd::assign(static_cast<T*>(b.factor_before)[i * b.ld_before + j], factor);
      }
      simd::assign(static_cast<T*>(b.y)[i * b.ldy + j], apply<silu>(gate).value * factor);
    }
  }
}

template <activation_function F>
constexpr of_each_dtype<gated_slice> forwards = {forward<F, float>, forward<F, simd::bf16>,
                                                 forward<F, simd::f16>};
template <activation_function F>
constexpr of_each_dtype<gated_backward_slice> backwards = {
    backward<F, float>, backward<F, simd::bf16>, backward<F, simd::f16>};

}  // namespace

extern const gated_kernels gated = {
    {forwards<silu>, forwards<gelu>, forwards<gelu_tanh>, forwards<fast_gelu>, forwards<relu>},
    {backwards<silu>, backwards<gelu>, backwards<gelu_tanh>, backwards<fast_gelu>, backwards<relu>},
    {silu_sums<float>, silu_sums<simd::bf16>, silu_sums<simd::f16>}};

}  // namespace velo::ops::reference
