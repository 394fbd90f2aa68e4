// The kernels of reductions: the same elements of several ranks are combined in rank order; and
// copies.
//
// float32 and 16-bit elements are summed in float32, float64 in float64, integers modulo 2^bits,
// always in the order of the sources, and rounded once. A result depends on its sources alone:
// neither on its position nor on how the tensor was cut. Memory bounds the speed.
#pragma once

#include <stdint.h>

#include "core/simd/kernel_list.hpp"
#include "core/simd/types.hpp"

namespace velo::comm {

using simd::kernel_entry;
using simd::kernel_list;

struct reduction_slice {
  const void* const* in;  // from each rank
  int ranks;
  void* out;  // may be one of `in`
  int64_t n;
  double scale;    // for every element of a sum
  bool bypass;     // write around the cache
  int shares = 0;  // the divisor of an average of floats; 0: the number of sources
};
using reduce_fn = void (*)(const reduction_slice&);

enum class element : int { f32, f64, f16, bf16, i8, i32, i64, u8 };
inline constexpr int element_count = 8;
enum class combine : int { sum, average, least, largest };
inline constexpr int combine_count = 4;

// A sum of elements, each times the weight of its source, in float32 and in the order of the
// sources.
struct weighted_slice {
  const void* const* in;
  const float* weights;
  int count;  // of sources
  float* out;
  int64_t n;
};

struct copy_slice {
  const void* from;
  void* to;
  int64_t bytes;
};

struct reduction_kernels {
  reduce_fn same[combine_count][element_count];  // in and out alike
  reduce_fn wide[combine_count][2];              // float16 and bfloat16 to float32
  reduce_fn narrow[2][2];                      // sums and averages of float32 to float16, bfloat16
  void (*weighted[3])(const weighted_slice&);  // of float32, float16, bfloat16
  void (*copy_around_cache)(const copy_slice&);
};
extern const kernel_list reduction_kernel_list;

const reduction_kernels& reductions_for(core::isa highest);

}  // namespace velo::comm
