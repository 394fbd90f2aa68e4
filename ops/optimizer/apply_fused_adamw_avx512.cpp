// apply_fused_adamw for AVX-512: the algorithm of apply_fused_adamw.inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/optimizer/apply_fused_adamw.hpp"

namespace velo::ops::avx512 {

namespace v = simd::avx512;
#include "ops/optimizer/apply_fused_adamw.inl"

}  // namespace velo::ops::avx512
