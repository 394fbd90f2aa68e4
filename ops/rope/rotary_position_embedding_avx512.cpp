// rotary_position_embedding for AVX-512: the algorithm of the .inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/rope/rotary_position_embedding.hpp"

namespace velo::ops::avx512 {

namespace v = simd::avx512;
#include "ops/rope/rotary_position_embedding.inl"

}  // namespace velo::ops::avx512
