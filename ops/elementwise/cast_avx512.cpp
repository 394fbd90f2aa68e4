// cast for AVX-512: the algorithm of cast.inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/elementwise/cast.hpp"

namespace velo::ops::avx512 {

namespace v = simd::avx512;
#include "ops/elementwise/cast.inl"

}  // namespace velo::ops::avx512
