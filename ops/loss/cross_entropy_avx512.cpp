// cross_entropy for AVX-512: the algorithm of cross_entropy.inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/loss/cross_entropy.hpp"

namespace velo::ops::avx512 {

namespace v = simd::avx512;
#include "core/simd/math.inl"
#include "ops/loss/cross_entropy.inl"

}  // namespace velo::ops::avx512
