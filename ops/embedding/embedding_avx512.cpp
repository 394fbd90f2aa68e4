// embedding for AVX-512: the algorithm of embedding.inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/embedding/embedding.hpp"

namespace velo::ops::avx512 {

namespace v = simd::avx512;
#include "ops/embedding/embedding.inl"

}  // namespace velo::ops::avx512
