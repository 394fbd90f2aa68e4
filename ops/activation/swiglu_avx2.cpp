// swiglu for AVX2 and FMA: the algorithm of swiglu.inl over eight floats.
#include "core/simd/avx2.hpp"
#include "ops/activation/swiglu.hpp"

namespace velo::ops::avx2 {

namespace v = simd::avx2;
#include "core/simd/math.inl"
#include "ops/activation/swiglu.inl"

}  // namespace velo::ops::avx2
