// topk_router and its gradient as operators: shapes, slices of tokens, weights, losses.
//
// Sums over tokens have one partial result a slice, added in the order of the slices, whose number
// depends on the sizes alone.
#include "ops/experts/topk_router.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/experts/expert_choice.hpp"
#include "ops/experts/quick_choice.hpp"
#include "ops/experts/token_scores.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "ops/replay/own_terms.hpp"
#include "velo/ops_experts.h"

namespace velo::ops {
namespace {

using core::fail;

constexpr double least_sum = 1e-20;  // as Megatron-LM adds to a sum of sigmoids

struct router_problem {
  std::int64_t tokens, experts, k;
};

void require_between(std::int64_t value, std::int64_t least, std::int64_t most, const char* field) {
  if (value >= least && value <= most) return;
  fail(VELO_ERR_ARGUMENT, core::text("args.%s", field),
       core::concat("a number in [", least, ", ", most, "]"), core::number(value));
}

void infer(const velo_topk_router_args& a, router_problem& p, output_shapes& outputs) {
  require_rank(*a.logits, "logits", 2, 2);
  p = {a.logits->shape[0], a.logits->shape[1], a.k};
  require_between(p.experts, 0, std::int64_t{1} << 20, "logits.shape");
  if (a.expert_bias != nullptr) require_shape(*a.expert_bias, "expert_bias", 1, &p.experts);
  require_between(a.num_groups, 1, std::max<std::int64_t>(p.experts, 1), "num_groups");
  if (p.experts % a.num_groups != 0) {
    fail(VELO_ERR_ARGUMENT, "args.num_groups",
         core::concat("a number that divides the ", p.experts, " experts"),
         core::number(a.num_groups));
  }
  const std::int64_t kept = a.kept_groups == 0 ? a.num_groups : a.kept_groups;
  require_between(kept, 1, a.num_groups, "kept_groups");
  require_between(p.k, 1, kept * (p.experts / a.num_groups), "k");
  const std::int64_t chosen[] = {p.tokens, p.k};
  outputs.set(a.weights, f32, 2, chosen);
  outputs.set(a.indices, i32, 2, chosen);
  outputs.set(a.counts, i64, 1, &p.experts);
  outputs.set(a.aux_loss, f32, 0, nullptr);
  outputs.set(a.z_loss, f32, 0, nullptr);
}

choice_rule rule_of(const velo_topk_router_args& a, const router_problem& p) {
  return {p.experts,
          p.k,
          a.num_groups,
          a.kept_groups == 0 ? a.num_groups : a.kept_groups,
          a.group_score == VELO_GROUP_SCORE_TOP2_SUM,
          a.score_function == VELO_ROUTER_SCORE_SIGMOID,
          data<const float>(a.expert_bias)};
}

double sum_of(const float* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  return sum;
}

// The weight of a choice over its score: scale, over the chosen scores where normalized.
template <class Args>
double weight_over_score(const Args& a, const float* scores, const std::int32_t* chosen,
                         std::int64_t k) {
  if (a.normalize == 0) return a.scale;
  double sum = least_sum;
  for (std::int64_t j = 0; j < k; ++j) sum += static_cast<double>(scores[expert_of(chosen[j])]);
  return a.scale / sum;
}

// What a slice of tokens adds up, and scratch of its own: areas of doubles.
struct slice_sums {
  double z = 0;
  double* shares;        // one an expert: the sum of s / sum(s)
  std::int64_t* counts;  // one an expert
};

template <class T>
class router {
 public:
  router(const velo_topk_router_args& a, const router_problem& p,
         const topk_router_kernels& kernels, core::execution& on)
      : a_(a),
        p_(p),
        kernels_(kernels),
        rule_(rule_of(a, p)),
        slices_(slice_rows_into(p.tokens, 64, 32)),
        indices_(data<std::int32_t>(a.indices)),
        weights_(data<float>(a.weights)) {
    const auto n = static_cast<std::size_t>(p.experts);
    const auto groups = static_cast<std::size_t>(a.num_groups);
    step_ = n + 2 * groups;
    const auto threads = static_cast<std::size_t>(on.threads.threads());
    values_ = on.scratch.take<double>(threads * step_);
    scores_ = on.scratch.take<float>(threads * n);
    quick_step_ = quick_choice::floats(rule_);
    quick_ = on.scratch.take<float>(threads * quick_step_);
    const auto tasks = static_cast<std::size_t>(slices_.tasks());
    sums_ = on.scratch.take<slice_sums>(tasks);
    auto* shares = on.scratch.take<double>(tasks * n);
    auto* counts = on.scratch.take<std::int64_t>(tasks * n);
    std::memset(shares, 0, tasks * n * sizeof(double));
    std::memset(counts, 0, tasks * n * sizeof(std::int64_t));
    for (std::size_t t = 0; t < tasks; ++t) sums_[t] = {0, shares + t * n, counts + t * n};
  }

  void run(core::execution& on) {
    on.threads(slices_.tasks(), [&](std::int64_t task, int thread) {
      for (std::int64_t t = slices_.begin(task); t < slices_.begin(task) + slices_.count(task); ++t)
        route(t, sums_[task], static_cast<std::size_t>(thread));
    });
    store_sums(on);
    if (a_.capacity == 0) return;
    auto* scratch =
        on.scratch.take<std::int64_t>(static_cast<std::size_t>(p_.experts + 1 + p_.tokens * p_.k));
    drop_beyond_capacity(
        {p_.tokens, p_.k, p_.experts, a_.capacity, a_.drop_policy == VELO_DROP_POLICY_POSITION},
        indices_, weights_, scratch);
  }

 private:
  void route(std::int64_t t, slice_sums& sums, std::size_t thread) {
    const std::int64_t n = p_.experts;
    const T* logits = data<const T>(a_.logits) + t * n;
    float* scores = scores_ + thread * static_cast<std::size_t>(n);
    double* values = values_ + thread * step_;
    float largest = 0, sum = 0;
    score(kernels_, router_row<T>{logits, n, rule_.sigmoid, scores, &largest, &sum});
    std::int32_t* chosen = indices_ + t * p_.k;
    if (!quick_choice(kernels_, rule_, quick_ + thread * quick_step_)
             .choose(logits, scores, chosen)) {
      for (std::int64_t e = 0; e < n; ++e)
        values[e] = static_cast<double>(simd::to_float(logits[e]));
      choose_experts(rule_, values, chosen);
    }
    const double factor = weight_over_score(a_, scores, chosen, p_.k);
    for (std::int64_t j = 0; j < p_.k; ++j) {
      weights_[t * p_.k + j] = static_cast<float>(factor * static_cast<double>(scores[chosen[j]]));
      ++sums.counts[chosen[j]];
    }
    if (a_.z_loss != nullptr) {
      const double lse = static_cast<double>(largest) + std::log(static_cast<double>(sum));
      sums.z += lse * lse;
    }
    if (a_.aux_loss == nullptr) return;
    const double share = rule_.sigmoid ? 1 / (sum_of(scores, n) + least_sum) : 1;
    for (std::int64_t e = 0; e < n; ++e) sums.shares[e] += share * static_cast<double>(scores[e]);
  }

  void store_sums(core::execution& on) const {
    const std::int64_t n = p_.experts;
    auto* counts = data<std::int64_t>(a_.counts);
    if (counts == nullptr) counts = on.scratch.take<std::int64_t>(static_cast<std::size_t>(n));
    const double tokens = static_cast<double>(std::max<std::int64_t>(p_.tokens, 1));
    double z = 0, balance = 0;
    for (std::int64_t s = 0; s < slices_.tasks(); ++s) z += sums_[s].z;
    for (std::int64_t e = 0; e < n; ++e) {
      double share = 0;
      counts[e] = 0;
      for (std::int64_t s = 0; s < slices_.tasks(); ++s)
        share += sums_[s].shares[e], counts[e] += sums_[s].counts[e];
      balance += share * static_cast<double>(counts[e]);
    }
    balance *= static_cast<double>(n) / (tokens * tokens * static_cast<double>(p_.k));
    if (a_.aux_loss != nullptr) *data<float>(a_.aux_loss) = static_cast<float>(balance);
    if (a_.z_loss != nullptr) *data<float>(a_.z_loss) = static_cast<float>(z / tokens);
  }

  const velo_topk_router_args& a_;
  const router_problem& p_;
  const topk_router_kernels& kernels_;
  const choice_rule rule_;
  const row_slices slices_;
  std::int32_t* indices_;
  float* weights_;
  std::size_t step_;  // values of a thread
  double* values_;
  float* scores_;
  std::size_t quick_step_;
  float* quick_;
  slice_sums* sums_;
};

template <class T>
void run(const velo_topk_router_args& a, const router_problem& p,
         const topk_router_kernels& kernels, core::execution& on) {
  router<T>(a, p, kernels, on).run(on);
}

// ---- the gradient ----

void infer_backward(const velo_topk_router_backward_args& a, router_problem& p,
                    output_shapes& outputs) {
  require_rank(*a.logits, "logits", 2, 2);
  require_rank(*a.indices, "indices", 2, 2);
  p = {a.logits->shape[0], a.logits->shape[1], a.indices->shape[1]};
  const std::int64_t chosen[] = {p.tokens, p.k};
  require_shape(*a.indices, "indices", 2, chosen);
  if (a.dweights != nullptr) require_shape(*a.dweights, "dweights", 2, chosen);
  if (a.counts != nullptr) require_shape(*a.counts, "counts", 1, &p.experts);
  if (a.daux_loss != nullptr) {
    require_given(a.counts, "counts");
    require_shape(*a.daux_loss, "daux_loss", 0, nullptr);
  }
  if (a.dz_loss != nullptr) require_shape(*a.dz_loss, "dz_loss", 0, nullptr);
  outputs.like(a.dlogits, *a.logits);
}

void require_counts(const velo_tensor* counts) {
  if (counts == nullptr) return;
  const auto* at = data<const std::int64_t>(counts);
  for (std::int64_t e = 0; e < numel(*counts); ++e) {
    if (at[e] >= 0) continue;
    fail(VELO_ERR_ARGUMENT, "args.counts", "counts from 0", core::concat(at[e], " in element ", e));
  }
}

// The gradient of a token's scores: that of the weights of the choices, and of the balance loss,
// whose gradient by a share of the scores is `balance`, one an expert, or null.
void gradient_of_scores(const velo_topk_router_backward_args& a, const router_problem& p,
                        std::int64_t t, const float* scores, const double* balance, float* d) {
  const std::int64_t n = p.experts;
  const auto* chosen = data<const std::int32_t>(a.indices) + t * p.k;
  const bool sigmoid = a.score_function == VELO_ROUTER_SCORE_SIGMOID;
  double share = 1, less = 0;
  if (balance != nullptr && sigmoid) {
    share = 1 / (sum_of(scores, n) + least_sum);
    for (std::int64_t e = 0; e < n; ++e) less += balance[e] * static_cast<double>(scores[e]);
    less *= share * share;
  }
  for (std::int64_t e = 0; e < n; ++e)
    d[e] = balance == nullptr ? 0.0f : static_cast<float>(balance[e] * share - less);
  if (a.dweights == nullptr) return;
  const auto* dweights = data<const float>(a.dweights) + t * p.k;
  const double factor = weight_over_score(a, scores, chosen, p.k);
  double dot = 0;  // of the gradients and scores of choices that are kept
  for (std::int64_t j = 0; a.normalize != 0 && j < p.k; ++j)
    if (chosen[j] >= 0)
      dot += static_cast<double>(dweights[j]) * static_cast<double>(scores[chosen[j]]);
  const double back = a.scale == 0 ? 0 : dot * factor * factor / a.scale;
  for (std::int64_t j = 0; j < p.k; ++j) {
    const bool kept = chosen[j] >= 0;
    float& to = d[expert_of(chosen[j])];
    const double own = kept ? factor * static_cast<double>(dweights[j]) : 0;
    to = static_cast<float>(static_cast<double>(to) + own - back);
  }
}

// The gradient of the balance loss by an expert's share of a token's scores.
const double* balance_of(const velo_topk_router_backward_args& a, const router_problem& p,
                         double tokens, core::arena& scratch) {
  if (a.daux_loss == nullptr) return nullptr;
  const auto* counts = data<const std::int64_t>(a.counts);
  auto* balance = scratch.take<double>(static_cast<std::size_t>(p.experts));
  const double factor = static_cast<double>(*data<const float>(a.daux_loss)) *
                        static_cast<double>(p.experts) /
                        (tokens * tokens * static_cast<double>(std::max<std::int64_t>(p.k, 1)));
  for (std::int64_t e = 0; e < p.experts; ++e) balance[e] = factor * static_cast<double>(counts[e]);
  return balance;
}

template <class T>
void backward(const velo_topk_router_backward_args& a, const router_problem& p,
              const topk_router_kernels& kernels, core::execution& on) {
  require_choices(*a.indices, p.experts);
  require_counts(a.counts);
  const std::int64_t n = p.experts;
  const double tokens = static_cast<double>(a.total_tokens == 0 ? p.tokens : a.total_tokens);
  const double* balance = balance_of(a, p, tokens, on.scratch);
  const double dz =
      a.dz_loss == nullptr ? 0 : 2 * static_cast<double>(*data<const float>(a.dz_loss)) / tokens;
  const bool sigmoid = a.score_function == VELO_ROUTER_SCORE_SIGMOID;
  const auto step = static_cast<std::size_t>(n);
  auto* areas = on.scratch.take<float>(2 * step * static_cast<std::size_t>(on.threads.threads()));
  const row_slices slices = slice_rows(p.tokens, n * static_cast<std::int64_t>(sizeof(float)));
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int thread) {
    float* scores = areas + 2 * step * static_cast<std::size_t>(thread);
    float* dscores = scores + step;
    for (std::int64_t t = slices.begin(task); t < slices.begin(task) + slices.count(task); ++t) {
      const T* logits = data<const T>(a.logits) + t * n;
      float largest = 0, sum = 0;
      score(kernels, router_row<T>{logits, n, sigmoid, scores, &largest, &sum});
      const double lse = static_cast<double>(largest) + std::log(static_cast<double>(sum));
      gradient_of_scores(a, p, t, scores, balance, dscores);
      kernels.gradient(router_gradient_row<T>{
          logits, n, sigmoid, scores, dscores, static_cast<float>(lse),
          static_cast<float>(dz == 0 ? 0 : dz * lse), data<T>(a.dlogits) + t * n});
    }
  });
}

// A normalized weight's gradient is a difference of two terms as large as dweights, which of one
// choice are equal.
double terms_of(const velo_topk_router_backward_args& a) {
  return a.dweights == nullptr || a.normalize == 0 ? 0 : a.scale * largest_magnitude(*a.dweights);
}

}  // namespace

extern const operator_def topk_router_operator =
    define<infer,
           by_dtype<&velo_topk_router_args::logits, run<float>, run<simd::bf16>, run<simd::f16>>>(
        topk_router_kernel_list);
extern const operator_def topk_router_backward_operator = with_terms<terms_of>(
    define<infer_backward, by_dtype<&velo_topk_router_backward_args::logits, backward<float>,
                                    backward<simd::bf16>, backward<simd::f16>>>(
        topk_router_kernel_list));

}  // namespace velo::ops
