// Symmetric quantization: integers of 8 or 4 bits and what they are multiples of.
//
//   scale = max(abs(x)) / limit, 1 if that is 0;  y = round(x / scale), to nearest even
//
// x: float32, bfloat16 or float16; scale float32; limit 127, of int4 7. The elements that share a
// scale are the tensor, a row, or neighbors along the last dimension but one. A slice is a run of
// one row. NaN and Inf become the scale, whose y are 0. All kernels give the same bits. Bytes: two
// reads of x, the second from cache but for whole tensors and channels, and one write of y. Bound:
// memory.
#pragma once

#include "core/simd/bytes.hpp"
#include "ops/elementwise/reduce_max_abs.hpp"

namespace velo::ops {

template <class T>
struct quantized_run {
  const T* x;
  const T* next;       // elements that will be read after them
  const float* scale;  // one, or n
  bool each;           // scale has n
  bool int4;           // two to a byte, the first at an even element
  bool bypass;         // write y, of int8, around the cache
  void* y;
  int64_t n;
};

struct quantize_kernels {
  const reduce_max_abs_kernels* max_abs;
  of_each_dtype<quantized_run> run;
};
extern const kernel_list quantize_kernel_list;

namespace reference {
extern const reduce_max_abs_kernels reduce_max_abs;
}

}  // namespace velo::ops
