// embedding for AVX2 and FMA: the algorithm of embedding.inl over eight floats.
#include "core/simd/avx2.hpp"
#include "ops/embedding/embedding.hpp"

namespace velo::ops::avx2 {

namespace v = simd::avx2;
#include "ops/embedding/embedding.inl"

}  // namespace velo::ops::avx2
