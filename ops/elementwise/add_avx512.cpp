// add for AVX-512: the algorithm of add.inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/elementwise/add.hpp"

namespace velo::ops::avx512 {

namespace v = simd::avx512;
#include "ops/elementwise/add.inl"

}  // namespace velo::ops::avx512
