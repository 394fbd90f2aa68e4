// y = a + b, element by element: residual connections.
//
// float32 or bfloat16, any shape, compact; the sum is rounded once. A slice is a run of elements.
// Bytes: two reads and one write of y. Bound: memory.
#pragma once

#include <stdint.h>

#include "core/simd/types.hpp"

namespace velo::ops {

template <class T>
struct add_slice {
  const T* a;
  const T* b;
  T* y;
  int64_t n;
  bool bypass;  // write y around the cache
};

namespace reference {
void add(const add_slice<float>& s);
void add(const add_slice<simd::bf16>& s);
}  // namespace reference
namespace avx2 {
void add(const add_slice<float>& s);
void add(const add_slice<simd::bf16>& s);
}  // namespace avx2
namespace avx512 {
void add(const add_slice<float>& s);
void add(const add_slice<simd::bf16>& s);
}  // namespace avx512

}  // namespace velo::ops
