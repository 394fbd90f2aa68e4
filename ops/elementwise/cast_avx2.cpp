// cast for AVX2 and FMA: the algorithm of cast.inl over eight floats.
#include "core/simd/avx2.hpp"
#include "ops/elementwise/cast.hpp"

namespace velo::ops::avx2 {

namespace v = simd::avx2;
#include "ops/elementwise/cast.inl"

}  // namespace velo::ops::avx2
