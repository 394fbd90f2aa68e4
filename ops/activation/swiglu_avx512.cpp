// swiglu for AVX-512: the algorithm of swiglu.inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/activation/swiglu.hpp"

namespace velo::ops::avx512 {

namespace v = simd::avx512;
#include "core/simd/math.inl"
#include "ops/activation/swiglu.inl"

}  // namespace velo::ops::avx512
