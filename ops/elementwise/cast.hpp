// y = x in another element type: float32 to bfloat16 (nearest even, NaN stays NaN) and back
// (exact).
//
// Any shape, compact. A slice is a run of elements. Bytes: one read of x, one write of y. Bound:
// memory.
#pragma once

#include <stdint.h>

#include "core/simd/types.hpp"

namespace velo::ops {

template <class From, class To>
struct cast_slice {
  const From* x;
  To* y;
  int64_t n;
  bool bypass;  // write y around the cache
};

namespace reference {
void cast(const cast_slice<float, simd::bf16>& s);
void cast(const cast_slice<simd::bf16, float>& s);
}  // namespace reference
namespace avx2 {
void cast(const cast_slice<float, simd::bf16>& s);
void cast(const cast_slice<simd::bf16, float>& s);
}  // namespace avx2
namespace avx512 {
void cast(const cast_slice<float, simd::bf16>& s);
void cast(const cast_slice<simd::bf16, float>& s);
}  // namespace avx512

}  // namespace velo::ops
