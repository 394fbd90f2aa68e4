// cast in plain loops: the reference for the other kernels.
#include "core/simd/scalar.hpp"
#include "ops/elementwise/cast.hpp"

namespace velo::ops::reference {
namespace {

void narrow(const cast_slice<float, simd::bf16>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) s.y[i] = simd::to_bf16(s.x[i]);
}

void widen(const cast_slice<simd::bf16, float>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) s.y[i] = simd::to_float(s.x[i]);
}

}  // namespace

extern const cast_kernels cast = {narrow, widen};

}  // namespace velo::ops::reference
