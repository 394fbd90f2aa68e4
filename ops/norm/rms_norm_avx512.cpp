// rms_norm for AVX-512: the algorithm of rms_norm.inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/norm/rms_norm.hpp"

namespace velo::ops::avx512 {

namespace v = simd::avx512;
#include "ops/norm/rms_norm.inl"

}  // namespace velo::ops::avx512
