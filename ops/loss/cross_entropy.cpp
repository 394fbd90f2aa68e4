// cross_entropy as an operator: its shapes, its rows, its reductions.
//
// The reduced loss is a sum in double over tokens in order, for any number of threads; the mean
// divides by the number of tokens that are not ignored.
#include "ops/loss/cross_entropy.hpp"

#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/indices.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_loss.h"

namespace velo::ops {
namespace {

void require_targets(const velo_tensor& logits, const velo_tensor& targets) {
  require_rank(logits, "logits", 2, 2);
  require_shape(targets, "targets", 1, logits.shape);
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
  require_targets(*a.logits, *a.targets);
  outputs.set(a.loss, f32, loss_rank(a.reduction), a.logits->shape);
  outputs.set(a.lse, f32, 1, a.logits->shape);
  p = problem_of(*a.logits);
}

void infer_backward(const velo_cross_entropy_backward_args& a, cross_entropy_problem& p,
                    output_shapes& outputs) {
  require_targets(*a.logits, *a.targets);
  require_shape(*a.dloss, "dloss", loss_rank(a.reduction), a.logits->shape);
  require_shape(*a.lse, "lse", 1, a.logits->shape);
  outputs.like(a.dlogits, *a.logits);
  p = problem_of(*a.logits);
}

std::int64_t counted(const index_reader& targets, std::int64_t tokens, std::int64_t ignore_index) {
  std::int64_t count = 0;
  for (std::int64_t t = 0; t < tokens; ++t) count += targets[t] != ignore_index;
  return count;
}

void reduce(const velo_cross_entropy_args& a, const float* losses, std::int64_t tokens) {
  double sum = 0;
  for (std::int64_t t = 0; t < tokens; ++t) sum += losses[t];
  const std::int64_t count = counted(index_reader(*a.targets), tokens, a.ignore_index);
  const bool mean = a.reduction == VELO_REDUCTION_MEAN;
  *data<float>(a.loss) = static_cast<float>(!mean        ? sum
                                            : count == 0 ? 0
                                                         : sum / static_cast<double>(count));
}

template <class T>
void forward(const velo_cross_entropy_args& a, const cross_entropy_problem& p,
             const cross_entropy_kernels& kernels, core::execution& on) {
  const std::int64_t tokens = p.tokens, n = p.n;
  require_indices(*a.targets, "targets", n, &a.ignore_index);
  const index_reader targets(*a.targets);
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
      losses[t] = targets[t] == a.ignore_index ? 0.0f : log_sum - simd::to_float(row[targets[t]]);
    }
  });
  if (reduced) reduce(a, losses, tokens);
}

template <class T>
void backward(const velo_cross_entropy_backward_args& a, const cross_entropy_problem& p,
              const cross_entropy_kernels& kernels, core::execution& on) {
  const std::int64_t tokens = p.tokens, n = p.n;
  require_indices(*a.targets, "targets", n, &a.ignore_index);
  const index_reader targets(*a.targets);
  const auto* dloss = data<const float>(a.dloss);
  const std::int64_t count =
      a.reduction == VELO_REDUCTION_MEAN ? counted(targets, tokens, a.ignore_index) : 1;
  const float shared = a.reduction == VELO_REDUCTION_NONE
                           ? 0.0f
                           : *dloss / static_cast<float>(std::max<std::int64_t>(count, 1));
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
      kernels.backward(cross_entropy_backward_row<T>{
          data<const T>(a.logits) + t * n, out, n, targets[t], data<const float>(a.lse)[t],
          a.reduction == VELO_REDUCTION_NONE ? dloss[t] : shared, bypass});
    }
  });
}

}  // namespace

extern const operator_def cross_entropy_operator =
    define<infer, by_dtype<&velo_cross_entropy_args::logits, forward<float>, forward<simd::bf16>,
                           forward<simd::f16>>>(cross_entropy_kernel_list);
extern const operator_def cross_entropy_backward_operator =
    define<infer_backward, by_dtype<&velo_cross_entropy_backward_args::logits, backward<float>,
                                    backward<simd::bf16>, backward<simd::f16>>>(
        cross_entropy_kernel_list);

}  // namespace velo::ops
