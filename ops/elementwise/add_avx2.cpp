// add for AVX2 and FMA: the algorithm of add.inl over eight floats.
#include "core/simd/avx2.hpp"
#include "ops/elementwise/add.hpp"

namespace velo::ops::avx2 {

namespace v = simd::avx2;
#include "ops/elementwise/add.inl"

}  // namespace velo::ops::avx2
