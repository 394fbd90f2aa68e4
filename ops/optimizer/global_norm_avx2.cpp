// global_norm for AVX2 and FMA: the algorithm of global_norm.inl over eight floats.
#include "core/simd/avx2.hpp"
#include "ops/optimizer/global_norm.hpp"

namespace velo::ops::avx2 {

namespace v = simd::avx2;
#include "ops/optimizer/global_norm.inl"

}  // namespace velo::ops::avx2
