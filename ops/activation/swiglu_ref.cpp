// swiglu in plain loops and double: the reference for the other kernels.
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/activation/swiglu.hpp"

namespace velo::ops::reference {
namespace {

template <class T>
void forward(const swiglu_slice<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double gate = simd::to_float(s.gate[i]);
    simd::assign(s.y[i], gate / (1 + std::exp(-gate)) * simd::to_float(s.up[i]));
  }
}

template <class T>
void backward(const swiglu_backward_slice<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double gate = simd::to_float(s.gate[i]);
    const double up = simd::to_float(s.up[i]);
    const double dy = simd::to_float(s.dy[i]);
    const double sigmoid = 1 / (1 + std::exp(-gate));
    simd::assign(s.dgate[i], dy * up * sigmoid * (1 + gate * (1 - sigmoid)));
    simd::assign(s.dup[i], dy * gate * sigmoid);
  }
}

}  // namespace

extern const swiglu_kernels swiglu = {{forward<float>, forward<simd::bf16>, forward<simd::f16>},
                                      {backward<float>, backward<simd::bf16>, backward<simd::f16>}};

}  // namespace velo::ops::reference
