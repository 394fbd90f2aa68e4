// cross_entropy as an operator: its shapes, its rows, its reductions.
//
// The reduced loss is a sum in double over tokens in order, for any number of threads; the mean
// divides by the weights of the targets that are not ignored.
#include "ops/loss/cross_entropy.hpp"

#include <algorithm>
#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/indices.hpp"
#include "ops/operator/rows.hpp"
#include "ops/replay/own_terms.hpp"
#include "velo/ops_loss.h"

namespace velo::ops {
namespace {

void require_targets(const velo_tensor& logits, const velo_tensor& targets,
                     const velo_tensor* class_weights) {
  require_rank(logits, "logits", 2, 2);
  require_shape(targets, "targets", 1, logits.shape);
  if (class_weights != nullptr) require_shape(*class_weights, "class_weights", 1, logits.shape + 1);
}

int loss_rank(std::int64_t reduction) {
  return reduction == VELO_REDUCTION_NONE ? 1 : 0;
}

struct cross_entropy_problem {
  std::int64_t tokens, n;  // rows of n logits; 0 where there are no rows
};

cross_entropy_problem problem_of(const velo_tensor& logits) {
  const std::int64_t tokens = logits.shape[0];
  return {tokens, tokens == 0 ? 0 : logits.shape[1]};
}

void infer(const velo_cross_entropy_args& a, cross_entropy_problem& p, output_shapes& outputs) {
  require_targets(*a.logits, *a.targets, a.class_weights);
  outputs.set(a.loss, f32, loss_rank(a.reduction), a.logits->shape);
  outputs.set(a.lse, f32, 1, a.logits->shape);
  p = problem_of(*a.logits);
}

void infer_backward(const velo_cross_entropy_backward_args& a, cross_entropy_problem& p,
                    output_shapes& outputs) {
  require_targets(*a.logits, *a.targets, a.class_weights);
  require_shape(*a.dloss, "dloss", loss_rank(a.reduction), a.logits->shape);
  require_shape(*a.lse, "lse", 1, a.logits->shape);
  outputs.like(a.dlogits, *a.logits);
  p = problem_of(*a.logits);
}

// The part of each class in a target: its weight, and e of the smoothing shared by all.
struct class_rule {
  const float* weights = nullptr;  // one a class; or nullptr: each is 1
  double smoothing = 0, sum = 0;   // sum: of the weights, where something is smoothed

  template <class Args>
  class_rule(const Args& a, std::int64_t n, core::execution& on) : smoothing(a.label_smoothing) {
    if (a.class_weights != nullptr) weights = data<const float>(a.class_weights);
    if (smoothing == 0) return;
    if (weights == nullptr) {
      auto* ones = on.scratch.take<float>(static_cast<std::size_t>(n));
      std::fill_n(ones, n, 1.0f);
      weights = ones;
    }
    for (std::int64_t v = 0; v < n; ++v) sum += static_cast<double>(weights[v]);
  }
  bool smooths() const { return smoothing != 0; }
  float weight(std::int64_t target) const { return weights == nullptr ? 1.0f : weights[target]; }
};

// The divisor of the mean: the weights of the targets that count; 1 where none does.
double weight_of_all(const index_reader& targets, std::int64_t tokens, std::int64_t ignore_index,
                     const class_rule& rule) {
  std::int64_t count = 0;
  double sum = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (targets[t] == ignore_index) continue;
    ++count;
    sum += static_cast<double>(rule.weight(targets[t]));
  }
  return count == 0 ? 1 : sum;
}

void reduce(const velo_cross_entropy_args& a, const float* losses, std::int64_t tokens,
            const class_rule& rule) {
  double sum = 0;
  for (std::int64_t t = 0; t < tokens; ++t) sum += static_cast<double>(losses[t]);
  if (a.reduction == VELO_REDUCTION_MEAN)
    sum /= weight_of_all(index_reader(*a.targets), tokens, a.ignore_index, rule);
  *data<float>(a.loss) = static_cast<float>(sum);
}

template <class T>
float loss_of(const T* row, std::int64_t n, float log_sum, std::int64_t target,
              const class_rule& rule, const cross_entropy_kernels& kernels) {
  const float missed = log_sum - simd::to_float(row[target]);
  if (!rule.smooths()) return missed * rule.weight(target);
  const double spread = log_sum * rule.sum -
                        kernels.weighted_sum(cross_entropy_weighted_row<T>{row, rule.weights, n});
  return static_cast<float>((1 - rule.smoothing) * missed * rule.weight(target) +
                            rule.smoothing / static_cast<double>(n) * spread);
}

template <class T>
void forward(const velo_cross_entropy_args& a, const cross_entropy_problem& p,
             const cross_entropy_kernels& kernels, core::execution& on) {
  const std::int64_t tokens = p.tokens, n = p.n;
  require_indices(*a.targets, "targets", n, &a.ignore_index);
  const index_reader targets(*a.targets);
  const class_rule rule(a, n, on);
  const bool reduced = a.reduction != VELO_REDUCTION_NONE;
  float* losses =
      reduced ? on.scratch.take<float>(static_cast<std::size_t>(tokens)) : data<float>(a.loss);
  float* lse = data<float>(a.lse);
  const row_slices slices = slice_rows(tokens, n * static_cast<std::int64_t>(sizeof(T)));
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      const T* row = data<const T>(a.logits) + t * n;
      const float log_sum = kernels.log_sum_exp(cross_entropy_row<T>{row, n});
      if (lse != nullptr) lse[t] = log_sum;
      losses[t] =
          targets[t] == a.ignore_index ? 0.0f : loss_of(row, n, log_sum, targets[t], rule, kernels);
    }
  });
  if (reduced) reduce(a, losses, tokens, rule);
}

// The gradient's part of a target, over the divisor of the mean, in double: weights may be small.
struct target_parts {
  const class_rule& rule;
  double divisor;
  float* spread = nullptr;  // e w[v] / n, where something is smoothed
  double spread_sum = 0;

  target_parts(const class_rule& classes, double all, std::int64_t n, core::execution& on)
      : rule(classes), divisor(all) {
    if (!rule.smooths()) return;
    const double share = rule.smoothing / static_cast<double>(n) / divisor;
    spread = on.scratch.take<float>(static_cast<std::size_t>(n));
    for (std::int64_t v = 0; v < n; ++v)
      spread[v] = static_cast<float>(share * static_cast<double>(rule.weights[v]));
    spread_sum = share * rule.sum;
  }

  // The row of a token whose loss has gradient `dloss`.
  template <class T>
  cross_entropy_backward_row<T> row(const T* logits, T* dlogits, std::int64_t n,
                                    std::int64_t target, float lse, float dloss,
                                    bool bypass) const {
    const double weight = static_cast<double>(rule.weight(target)) / divisor;
    if (!rule.smooths()) {
      const auto scaled = static_cast<float>(static_cast<double>(dloss) * weight);
      return {logits, dlogits, n, target, lse, scaled, bypass, nullptr, 0, 0};
    }
    const double hit = (1 - rule.smoothing) * weight;
    return {logits,
            dlogits,
            n,
            target,
            lse,
            dloss,
            bypass,
            spread,
            static_cast<float>(hit),
            static_cast<float>(hit + spread_sum)};
  }
};

template <class T>
void backward(const velo_cross_entropy_backward_args& a, const cross_entropy_problem& p,
              const cross_entropy_kernels& kernels, core::execution& on) {
  const std::int64_t tokens = p.tokens, n = p.n;
  require_indices(*a.targets, "targets", n, &a.ignore_index);
  const index_reader targets(*a.targets);
  const class_rule rule(a, n, on);
  const auto* dloss = data<const float>(a.dloss);
  const bool none = a.reduction == VELO_REDUCTION_NONE;
  const double all =
      a.reduction == VELO_REDUCTION_MEAN ? weight_of_all(targets, tokens, a.ignore_index, rule) : 1;
  const target_parts parts(rule, all, n, on);
  const auto row_bytes = n * static_cast<std::int64_t>(sizeof(T));
  const row_slices slices = slice_rows(tokens, row_bytes);
  // In place, the lines are already in cache.
  const bool bypass = data<T>(a.dlogits) != data<const T>(a.logits) &&
                      bypass_cache(data<T>(a.dlogits), tokens, row_bytes, on);
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      T* out = data<T>(a.dlogits) + t * n;
      if (targets[t] == a.ignore_index) {
        std::memset(out, 0, sizeof(T) * static_cast<std::size_t>(n));
        continue;
      }
      kernels.backward(parts.row(data<const T>(a.logits) + t * n, out, n, targets[t],
                                 data<const float>(a.lse)[t], dloss[none ? t : 0], bypass));
    }
  });
}

// A loss is a weight times the difference of lse and a logit, which are rounded as the largest
// logit is, however small the loss. A sum has such terms of all tokens; the mean divides them.
double terms_of(const velo_cross_entropy_args& a) {
  const auto* weights = data<const float>(a.class_weights);
  const double term =
      largest_magnitude(*a.logits) * (weights == nullptr ? 1 : largest_magnitude(*a.class_weights));
  if (a.reduction == VELO_REDUCTION_NONE) return term;
  const index_reader targets(*a.targets);
  double tokens = 0, all = 0;
  for (std::int64_t t = 0; t < numel(*a.targets); ++t) {
    if (targets[t] == a.ignore_index) continue;
    ++tokens;
    all += weights == nullptr ? 1 : static_cast<double>(weights[targets[t]]);
  }
  if (a.reduction == VELO_REDUCTION_SUM) return term * tokens;
  return all == 0 ? 0 : term * tokens / std::abs(all);
}

}  // namespace

extern const operator_def cross_entropy_operator = with_terms<terms_of>(
    define<infer, by_dtype<&velo_cross_entropy_args::logits, forward<float>, forward<simd::bf16>,
                           forward<simd::f16>>>(cross_entropy_kernel_list));
extern const operator_def cross_entropy_backward_operator =
    define<infer_backward, by_dtype<&velo_cross_entropy_backward_args::logits, backward<float>,
                                    backward<simd::bf16>, backward<simd::f16>>>(
        cross_entropy_kernel_list);

}  // namespace velo::ops
