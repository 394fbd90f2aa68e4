// rotary_position_embedding for AVX2 and FMA: the algorithm of the .inl over eight floats.
#include "core/simd/avx2.hpp"
#include "ops/rope/rotary_position_embedding.hpp"

namespace velo::ops::avx2 {

namespace v = simd::avx2;
#include "ops/rope/rotary_position_embedding.inl"

}  // namespace velo::ops::avx2
