// The norm of all gradients together, and the factor that clips it.
//
//   sum_of_squares (+)= sum x^2;   norm = sqrt(sum_of_squares);   clip = min(1, max_norm / (norm +
//   1e-6))
//
// float32 or bfloat16. A slice is 4096 elements, summed in float32 in a fixed tree; slices are
// added in double in order, so the result does not depend on threads. Bytes: one read of x. Bound:
// memory.
#pragma once

#include <stdint.h>

#include "core/simd/types.hpp"

namespace velo::ops {

template <class T>
struct square_slice {
  const T* x;
  int64_t n;
};

namespace reference {
double sum_of_squares(const square_slice<float>& s);
double sum_of_squares(const square_slice<simd::bf16>& s);
}  // namespace reference
namespace avx2 {
double sum_of_squares(const square_slice<float>& s);
double sum_of_squares(const square_slice<simd::bf16>& s);
}  // namespace avx2
namespace avx512 {
double sum_of_squares(const square_slice<float>& s);
double sum_of_squares(const square_slice<simd::bf16>& s);
}  // namespace avx512

}  // namespace velo::ops
