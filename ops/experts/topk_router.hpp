// The router of a mixture of experts: scores of experts, the choice of k for each token, weights.
//
//   scores    s = softmax(logits), or sigmoid(logits)
//   choice    the k largest s + bias, of the best groups where there are groups; ties: lower index
//   weights   w_j = scale s_j, over the sum of the chosen s where normalized
//   balance   aux_loss = E sum_e f_e p_e: f the share of choices, p the mean of s / sum(s)
//   z         z_loss = mean(logsumexp(logits)^2)
//
// logits float32, bfloat16 or float16, all else float32. Kernels compute the scores of a row and
// its gradient, and find the largest values; the choice is the same for every kernel, since it is
// made of exact values where float32 ones are too near each other (quick_choice.hpp).
// A slice is some tokens. Bytes: the logits once. Bound: arithmetic, an exponential a logit.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

// The scores of one token, and what its logsumexp is made of.
template <class T>
struct router_row {
  const T* logits;
  int64_t n;
  bool sigmoid;
  float* scores;
  float *largest, *sum;  // logsumexp = largest + log(sum)
};

// dlogits from the gradient of the scores and that of logsumexp.
template <class T>
struct router_gradient_row {
  const T* logits;
  int64_t n;
  bool sigmoid;
  const float *scores, *dscores;
  float lse, dlse;
  T* dlogits;
};

// What a choice compares: the logits, or scores and a bias where there is one; NaN as -Inf.
template <class T>
struct router_values {
  const T* logits;
  const float* scores;  // or nullptr: the logits
  const float* bias;    // or nullptr
  int64_t n;
  float* values;
};

// The `count` largest of n values, the best first, of equal ones the lower index; never a NaN. A
// value that was found becomes NaN; where there are too few, -Inf at -1 is found.
struct router_largest {
  float* values;
  int64_t n, count;
  float* found;
  int32_t* places;
};

// The largest value of each group, or the sum of its two largest.
struct router_groups {
  const float* values;
  int64_t groups, size;
  bool sums_two;
  float* scores;
};

struct topk_router_kernels {
  of_each_dtype<router_row> scores;
  of_each_dtype<router_gradient_row> gradient;
  of_each_dtype<router_values> values;
  void (*largest)(const router_largest&);
  void (*group_scores)(const router_groups&);
};
extern const kernel_list topk_router_kernel_list;

namespace reference {
extern const topk_router_kernels topk_router;
}

}  // namespace velo::ops
