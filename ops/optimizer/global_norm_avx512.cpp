// global_norm for AVX-512: the algorithm of global_norm.inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/optimizer/global_norm.hpp"

namespace velo::ops::avx512 {

namespace v = simd::avx512;
#include "ops/optimizer/global_norm.inl"

}  // namespace velo::ops::avx512
