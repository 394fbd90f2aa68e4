// rms_norm for AVX2 and FMA: the algorithm of rms_norm.inl over eight floats.
#include "core/simd/avx2.hpp"
#include "ops/norm/rms_norm.hpp"

namespace velo::ops::avx2 {

namespace v = simd::avx2;
#include "ops/norm/rms_norm.inl"

}  // namespace velo::ops::avx2
