// global_norm's sums in plain loops and double: the reference for the other kernels.
#include "core/simd/scalar.hpp"
#include "ops/optimizer/global_norm.hpp"

namespace velo::ops::reference {
namespace {

template <class T>
double squares(const square_slice<T>& s) {
  double sum = 0;
  for (std::int64_t i = 0; i < s.n; ++i)
    sum += static_cast<double>(simd::to_float(s.x[i])) * simd::to_float(s.x[i]);
  return sum;
}

}  // namespace

extern const global_norm_kernels global_norm = {
    {squares<float>, squares<simd::bf16>, squares<simd::f16>}};

}  // namespace velo::ops::reference
