// apply_fused_adamw for AVX2 and FMA: the algorithm of apply_fused_adamw.inl over eight floats.
#include "core/simd/avx2.hpp"
#include "ops/optimizer/apply_fused_adamw.hpp"

namespace velo::ops::avx2 {

namespace v = simd::avx2;
#include "ops/optimizer/apply_fused_adamw.inl"

}  // namespace velo::ops::avx2
