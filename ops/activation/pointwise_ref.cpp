// The activations in plain loops and double: the reference for the other kernels.
#include "core/simd/scalar.hpp"
#include "ops/activation/function_ref.hpp"
#include "ops/activation/pointwise.hpp"

namespace velo::ops::reference {
namespace {

template <activation_function F, class T>
void forward(const pointwise_slice<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i)
    simd::assign(s.y[i], apply<F>(simd::to_float(s.x[i])).value);
}

template <activation_function F, class T>
void backward(const pointwise_backward_slice<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i)
    simd::assign(s.dx[i], gradient<F>(simd::to_float(s.dy[i]), apply<F>(simd::to_float(s.x[i]))));
}

template <activation_function F>
constexpr of_each_dtype<pointwise_slice> forwards = {forward<F, float>, forward<F, simd::bf16>,
                                                     forward<F, simd::f16>};
template <activation_function F>
constexpr of_each_dtype<pointwise_backward_slice> backwards = {
    backward<F, float>, backward<F, simd::bf16>, backward<F, simd::f16>};

}  // namespace

extern const pointwise_kernels pointwise = {
    {forwards<silu>, forwards<gelu>, forwards<gelu_tanh>, forwards<fast_gelu>, forwards<relu>},
    {backwards<silu>, backwards<gelu>, backwards<gelu_tanh>, backwards<fast_gelu>,
     backwards<relu>}};

}  // namespace velo::ops::reference
