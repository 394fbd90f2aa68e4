// Cross-entropy of logits against integer targets, and its gradient in place.
//
//   loss[t] = lse[t] - logits[t, target],  lse[t] = log(sum_v exp(logits[t, v]))      0 for ignored
//   tokens dlogits[t, v] = (exp(logits[t, v] - lse[t]) - [v = target]) * dloss[t]
//
// Logits float32 or bfloat16, rows of n; all sums in float32 against the largest logit so far,
// losses added up in double. A row is a task's unit. Bytes: forward one read of the logits,
// backward one read and one write, in place if wanted: no second logits tensor exists. Bound:
// memory from DRAM, exp in cache.
#pragma once

#include <stdint.h>

#include "core/simd/types.hpp"

namespace velo::ops {

template <class T>
struct cross_entropy_row {
  const T* logits;
  int64_t n;
};

template <class T>
struct cross_entropy_backward_row {
  const T* logits;
  T* dlogits;
  int64_t n;
  int64_t target;  // in [0, n)
  float lse;
  float dloss;
  bool bypass;  // write dlogits around the cache
};

namespace reference {
float log_sum_exp(const cross_entropy_row<float>& s);
float log_sum_exp(const cross_entropy_row<simd::bf16>& s);
void cross_entropy_backward(const cross_entropy_backward_row<float>& s);
void cross_entropy_backward(const cross_entropy_backward_row<simd::bf16>& s);
}  // namespace reference
namespace avx2 {
float log_sum_exp(const cross_entropy_row<float>& s);
float log_sum_exp(const cross_entropy_row<simd::bf16>& s);
void cross_entropy_backward(const cross_entropy_backward_row<float>& s);
void cross_entropy_backward(const cross_entropy_backward_row<simd::bf16>& s);
}  // namespace avx2
namespace avx512 {
float log_sum_exp(const cross_entropy_row<float>& s);
float log_sum_exp(const cross_entropy_row<simd::bf16>& s);
void cross_entropy_backward(const cross_entropy_backward_row<float>& s);
void cross_entropy_backward(const cross_entropy_backward_row<simd::bf16>& s);
}  // namespace avx512

}  // namespace velo::ops
