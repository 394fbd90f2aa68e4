// cast in plain loops: the reference for the other kernels.
#include "core/simd/scalar.hpp"
#include "ops/elementwise/cast.hpp"

namespace velo::ops::reference {
namespace {

using simd::bf16;
using simd::f16;

template <class From, class To>
void convert(const cast_slice<From, To>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) simd::assign(s.y[i], simd::to_float(s.x[i]));
}

}  // namespace

extern const cast_kernels cast = {convert<float, bf16>, convert<float, f16>, convert<bf16, float>,
                                  convert<bf16, f16>,   convert<f16, float>, convert<f16, bf16>};

}  // namespace velo::ops::reference
