// cross_entropy for AVX2 and FMA: the algorithm of cross_entropy.inl over eight floats.
#include "core/simd/avx2.hpp"
#include "ops/loss/cross_entropy.hpp"

namespace velo::ops::avx2 {

namespace v = simd::avx2;
#include "core/simd/math.inl"
#include "ops/loss/cross_entropy.inl"

}  // namespace velo::ops::avx2
