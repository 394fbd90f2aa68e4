// Cross-entropy of logits against integer targets, and its gradient in place.
//
//   lse[t]        = log(sum_v exp(logits[t, v]))
//   loss[t]       = lse[t] - logits[t, target]                              0 for ignored tokens
//   dlogits[t, v] = (exp(logits[t, v] - lse[t]) - [v = target]) * dloss[t]
//
// With class weights w and label smoothing e the one-hot target becomes b[t, v] = (1 - e) w[v]
// [v = target] + e w[v] / n, and the gradient (exp(..) sum_v b[t, v] - b[t, v]) dloss[t]; the loss
// takes another pass over a row, sum_v w[v] logits[t, v], where e is not 0.
//
// Logits float32, bfloat16 or float16, rows of n; all sums in float32 against the largest logit so
// far, losses added up in double. A row is a task's unit. Bytes: forward one read of the logits,
// backward one read and one write, in place if wanted: no second logits tensor exists. Bound:
// memory from DRAM, exp in cache.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

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
  int64_t target;  // in [0, n), or -1: it is none of them
  float lse;
  float dloss;          // times the target's weight where nothing is smoothed
  bool bypass;          // write dlogits around the cache
  const float* spread;  // smoothed: e w[v] / n, one a class; else nullptr, and the rest is unread
  float hit;            // (1 - e) w[target]
  float total;          // sum_v b[t, v]
};

// A row's logits times the classes' weights.
template <class T>
struct cross_entropy_weighted_row {
  const T* logits;
  const float* weights;
  int64_t n;
};

struct cross_entropy_kernels {
  of_each_dtype<cross_entropy_row, float> log_sum_exp;
  of_each_dtype<cross_entropy_backward_row> backward;
  of_each_dtype<cross_entropy_weighted_row, double> weighted_sum;
};
extern const kernel_list cross_entropy_kernel_list;

}  // namespace velo::ops
