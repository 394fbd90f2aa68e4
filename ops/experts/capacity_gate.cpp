// capacity_gate and its gradient as operators: DeepSpeed's gates top-1 and top-2, whose experts
// have a limited number of places for tokens.
//
//   p         softmax(logits)
//   choice    the expert of the largest logit, and with k 2 that of the second largest; ties: lower
//             index. Gumbel noise is added to the logits that the last of the k choices compares
//   place     ops/experts/gate_places.hpp; choices beyond the capacity are dropped
//   weights   k 1: p; k 2: p over the sum of those of the token's choices that are kept
//   balance   aux_loss = E sum_e mean(p_e) mean(first choices of e), before any is dropped
//
// A token's choices in index form and the matrices [T, E, capacity] are made of the same numbers.
// Kernels are those of the router (topk_router.hpp), which choose and score alike. Sums over tokens
// have one partial result a slice, added in the order of the slices, whose number depends on the
// sizes alone. Bytes: the logits once, and the matrices where they are asked for. Bound:
// arithmetic, an exponential a logit; with noise two logarithms more.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/experts/expert_choice.hpp"
#include "ops/experts/gate_draws.hpp"
#include "ops/experts/gate_places.hpp"
#include "ops/experts/quick_choice.hpp"
#include "ops/experts/token_scores.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "ops/replay/own_terms.hpp"
#include "velo/ops_experts.h"

namespace velo::ops {
namespace {

using core::fail;

constexpr double least_sum = 0x1p-23;  // of two weights, as in DeepSpeed

struct gate_problem {
  std::int64_t tokens, experts, k, capacity;
};

// The places of an expert. In float32, as DeepSpeed and MindSpeed round.
std::int64_t capacity_of(const velo_capacity_gate_args& a, const gate_problem& p) {
  if (a.capacity != 0) return a.capacity;
  const auto even = static_cast<float>(static_cast<double>(p.tokens) /
                                       static_cast<double>(std::max<std::int64_t>(p.experts, 1)));
  const float places =
      std::ceil(even * static_cast<float>(a.capacity_factor * static_cast<double>(p.k)));
  if (!(places < static_cast<float>(p.tokens))) return p.tokens;
  return std::min(p.tokens, std::max(a.min_capacity, static_cast<std::int64_t>(places)));
}

void require_sizes(const velo_tensor& logits, gate_problem& p) {
  require_rank(logits, "logits", 2, 2);
  p.tokens = logits.shape[0], p.experts = logits.shape[1];
  constexpr std::int64_t most_tokens = std::int64_t{1} << 31, most_experts = std::int64_t{1} << 20;
  if (p.tokens < most_tokens && p.experts <= most_experts) return;
  fail(VELO_ERR_SHAPE, "args.logits.shape", "fewer than 2^31 tokens, at most 2^20 experts",
       shape_name(logits.ndim, logits.shape));
}

void infer(const velo_capacity_gate_args& a, gate_problem& p, output_shapes& outputs) {
  require_sizes(*a.logits, p);
  p.k = a.k;
  if (p.k > p.experts)
    fail(VELO_ERR_ARGUMENT, "args.k", core::concat("at most the ", p.experts, " experts"),
         core::number(p.k));
  if (p.k == 2 && a.random_selection != 0)
    fail(VELO_ERR_ARGUMENT, "args.random_selection", "0 where k is 2", "1");
  p.capacity = capacity_of(a, p);
  const std::int64_t chosen[] = {p.tokens, p.k};
  outputs.set(a.weights, f32, 2, chosen);
  outputs.set(a.indices, i32, 2, chosen);
  outputs.set(a.positions, i32, 2, chosen);
  const std::int64_t places[] = {p.tokens, p.experts, p.capacity};
  outputs.set(a.slot_tokens, i32, 2, places + 1);
  outputs.set(a.combine, f32, 3, places);
  outputs.set(a.dispatch, u8, 3, places);
  outputs.set(a.counts, i64, 1, &p.experts);
  outputs.set(a.aux_loss, f32, 0, nullptr);
  outputs.set(a.z_loss, f32, 0, nullptr);
}

// What a slice of tokens adds up.
struct slice_sums {
  double z = 0;
  double* shares;        // one an expert: the sum of p
  std::int64_t* counts;  // one an expert: first choices
};

template <class T>
class gate {
 public:
  gate(const velo_capacity_gate_args& a, const gate_problem& p, const topk_router_kernels& kernels,
       core::execution& on)
      : a_(a),
        p_(p),
        kernels_(kernels),
        rule_{p.experts, p.k, 1, 1, false, false, nullptr},
        draws_(a.seed, a.offset, a.first_token, p.experts),
        slices_(slice_rows_into(p.tokens, 64, 32)),
        indices_(data<std::int32_t>(a.indices)),
        weights_(data<float>(a.weights)) {
    const auto n = static_cast<std::size_t>(p.experts);
    const auto threads = static_cast<std::size_t>(on.threads.threads());
    values_ = on.scratch.take<double>(threads * n);
    scores_ = on.scratch.take<float>(threads * n);
    quick_step_ = quick_choice::floats(rule_);
    quick_ = on.scratch.take<float>(threads * quick_step_);
    const auto tasks = static_cast<std::size_t>(slices_.tasks());
    sums_ = on.scratch.take<slice_sums>(tasks);
    auto* shares = on.scratch.take<double>(tasks * n);
    auto* counts = on.scratch.take<std::int64_t>(tasks * n);
    std::fill_n(shares, tasks * n, 0.0);
    std::fill_n(counts, tasks * n, std::int64_t{0});
    for (std::size_t t = 0; t < tasks; ++t) sums_[t] = {0, shares + t * n, counts + t * n};
  }

  void run(core::execution& on) {
    on.threads(slices_.tasks(), [&](std::int64_t task, int thread) {
      for (std::int64_t t = slices_.begin(task); t < slices_.begin(task) + slices_.count(task); ++t)
        choose(t, sums_[task], static_cast<std::size_t>(thread));
    });
    store_losses();
    place(on);
    weigh();
    store_slots();
    store_matrices(on);
  }

 private:
  void choose(std::int64_t t, slice_sums& sums, std::size_t thread) {
    const std::int64_t n = p_.experts;
    const T* logits = data<const T>(a_.logits) + t * n;
    float* scores = scores_ + thread * static_cast<std::size_t>(n);
    float largest = 0, sum = 0;
    score(kernels_, router_row<T>{logits, n, false, scores, &largest, &sum});
    std::int32_t* chosen = indices_ + t * p_.k;
    double* values = values_ + thread * static_cast<std::size_t>(n);
    const bool noisy = a_.noise == VELO_GATE_NOISE_RSAMPLE;
    const bool quick =
        quick_choice(kernels_, rule_, quick_ + thread * quick_step_).choose(logits, scores, chosen);
    if (!quick || noisy)
      for (std::int64_t e = 0; e < n; ++e)
        values[e] = static_cast<double>(simd::to_float(logits[e]));
    if (!quick) choose_experts(rule_, values, chosen);
    if (noisy) choose_last(t, values, chosen);
    for (std::int64_t j = 0; j < p_.k; ++j) weights_[t * p_.k + j] = scores[chosen[j]];
    ++sums.counts[chosen[0]];
    for (std::int64_t e = 0; e < n; ++e) sums.shares[e] += static_cast<double>(scores[e]);
    const double lse = static_cast<double>(largest) + std::log(static_cast<double>(sum));
    sums.z += lse * lse;
  }

  // The last choice of a token by its logits with noise, without the experts chosen before it.
  void choose_last(std::int64_t t, double* values, std::int32_t* chosen) const {
    draws_.add_gumbel(t, values);
    const std::int32_t taken = p_.k == 2 ? chosen[0] : -1;
    const auto value = [&](std::int32_t e) {
      return std::isnan(values[e]) ? -INFINITY : values[e];
    };
    std::int32_t best = -1;
    for (std::int32_t e = 0; e < p_.experts; ++e)
      if (e != taken && (best < 0 || value(e) > value(best))) best = e;
    chosen[p_.k - 1] = best;
  }

  void store_losses() const {
    const std::int64_t n = p_.experts;
    const double tokens = static_cast<double>(std::max<std::int64_t>(p_.tokens, 1));
    double z = 0, balance = 0;
    for (std::int64_t s = 0; s < slices_.tasks(); ++s) z += sums_[s].z;
    for (std::int64_t e = 0; e < n; ++e) {
      double share = 0;
      std::int64_t first = 0;
      for (std::int64_t s = 0; s < slices_.tasks(); ++s)
        share += sums_[s].shares[e], first += sums_[s].counts[e];
      balance += share * static_cast<double>(first);
    }
    balance *= static_cast<double>(n) / (tokens * tokens);
    if (a_.aux_loss != nullptr) *data<float>(a_.aux_loss) = static_cast<float>(balance);
    if (a_.z_loss != nullptr) *data<float>(a_.z_loss) = static_cast<float>(z / tokens);
  }

  void place(core::execution& on) const {
    const auto n = static_cast<std::size_t>(p_.experts),
               tokens = static_cast<std::size_t>(p_.tokens);
    auto* counts = data<std::int64_t>(a_.counts);
    if (counts == nullptr) counts = on.scratch.take<std::int64_t>(n);
    std::uint32_t* draws = nullptr;
    if (a_.random_selection != 0) {
      draws = on.scratch.take<std::uint32_t>(tokens);
      for (std::int64_t t = 0; t < p_.tokens; ++t) draws[t] = draws_.of_token(t);
    }
    place_choices({p_.tokens, p_.k, p_.experts, p_.capacity, draws}, indices_,
                  data<std::int32_t>(a_.positions), counts,
                  on.scratch.take<std::int64_t>(n + 1 + tokens));
  }

  // Weights of dropped choices are 0; two kept ones sum to 1.
  void weigh() const {
    for (std::int64_t t = 0; t < p_.tokens; ++t) {
      const std::int32_t* chosen = indices_ + t * p_.k;
      float* weights = weights_ + t * p_.k;
      double sum = 0;
      for (std::int64_t j = 0; j < p_.k; ++j) {
        if (chosen[j] < 0) weights[j] = 0;
        sum += static_cast<double>(weights[j]);
      }
      if (p_.k == 1) continue;
      for (std::int64_t j = 0; j < p_.k; ++j)
        weights[j] = static_cast<float>(static_cast<double>(weights[j]) / std::max(sum, least_sum));
    }
  }

  void store_slots() const {
    auto* slots = data<std::int32_t>(a_.slot_tokens);
    if (slots == nullptr) return;
    std::fill_n(slots, p_.experts * p_.capacity, -1);
    const auto* positions = data<const std::int32_t>(a_.positions);
    for (std::int64_t f = 0; f < p_.tokens * p_.k; ++f)
      if (indices_[f] >= 0)
        slots[indices_[f] * p_.capacity + positions[f]] = static_cast<std::int32_t>(f / p_.k);
  }

  void store_matrices(core::execution& on) const {
    auto* combine = data<float>(a_.combine);
    auto* dispatch = data<std::uint8_t>(a_.dispatch);
    if (combine == nullptr && dispatch == nullptr) return;
    const std::int64_t row = p_.experts * p_.capacity;
    const auto* positions = data<const std::int32_t>(a_.positions);
    const row_slices slices = slice_rows(p_.tokens, row * static_cast<std::int64_t>(sizeof(float)));
    on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
      const std::int64_t first = slices.begin(task), end = first + slices.count(task);
      if (combine != nullptr) std::fill(combine + first * row, combine + end * row, 0.0f);
      if (dispatch != nullptr)
        std::fill(dispatch + first * row, dispatch + end * row, std::uint8_t{0});
      for (std::int64_t f = first * p_.k; f < end * p_.k; ++f) {
        if (indices_[f] < 0) continue;
        const std::int64_t at = f / p_.k * row + indices_[f] * p_.capacity + positions[f];
        if (combine != nullptr) combine[at] = weights_[f];
        if (dispatch != nullptr) dispatch[at] = 1;
      }
    });
  }

  const velo_capacity_gate_args& a_;
  const gate_problem& p_;
  const topk_router_kernels& kernels_;
  const choice_rule rule_;
  const gate_draws draws_;
  const row_slices slices_;
  std::int32_t* indices_;
  float* weights_;
  double* values_;
  float* scores_;
  std::size_t quick_step_;
  float* quick_;
  slice_sums* sums_;
};

template <class T>
void run(const velo_capacity_gate_args& a, const gate_problem& p,
         const topk_router_kernels& kernels, core::execution& on) {
  gate<T>(a, p, kernels, on).run(on);
}

// ---- the gradient ----

void infer_backward(const velo_capacity_gate_backward_args& a, gate_problem& p,
                    output_shapes& outputs) {
  require_sizes(*a.logits, p);
  require_rank(*a.indices, "indices", 2, 2);
  p.k = a.indices->shape[1];
  const std::int64_t chosen[] = {p.tokens, p.k};
  require_shape(*a.indices, "indices", 2, chosen);
  if (p.k < 1 || p.k > 2)
    fail(VELO_ERR_SHAPE, "args.indices.shape", "one or two choices a token", core::number(p.k));
  if (a.positions != nullptr) require_shape(*a.positions, "positions", 2, chosen);
  if (a.dweights != nullptr) require_shape(*a.dweights, "dweights", 2, chosen);
  if (a.dcombine != nullptr) {
    require_given(a.positions, "positions");
    require_rank(*a.dcombine, "dcombine", 3, 3);
    p.capacity = a.dcombine->shape[2];
    const std::int64_t places[] = {p.tokens, p.experts, p.capacity};
    require_shape(*a.dcombine, "dcombine", 3, places);
  }
  if (a.daux_loss != nullptr) require_shape(*a.daux_loss, "daux_loss", 0, nullptr);
  if (a.dz_loss != nullptr) require_shape(*a.dz_loss, "dz_loss", 0, nullptr);
  outputs.like(a.dlogits, *a.logits);
}

// Positions say where kept choices lie in dcombine.
void require_positions(const velo_capacity_gate_backward_args& a, const gate_problem& p) {
  if (a.dcombine == nullptr) return;
  const auto* indices = data<const std::int32_t>(a.indices);
  const auto* at = data<const std::int32_t>(a.positions);
  for (std::int64_t f = 0; f < p.tokens * p.k; ++f) {
    if (indices[f] < 0 || (at[f] >= 0 && at[f] < p.capacity)) continue;
    fail(VELO_ERR_ARGUMENT, "args.positions", core::concat("positions in [0, ", p.capacity, ")"),
         core::concat(at[f], " in element ", f));
  }
}

// The gradient of the weight of a choice that is kept.
double gradient_of_weight(const velo_capacity_gate_backward_args& a, const gate_problem& p,
                          std::int64_t t, std::int64_t j) {
  const std::int64_t f = t * p.k + j;
  double d = 0;
  if (a.dweights != nullptr) d += static_cast<double>(data<const float>(a.dweights)[f]);
  if (a.dcombine != nullptr) {
    const std::int64_t expert = data<const std::int32_t>(a.indices)[f];
    const std::int64_t place = data<const std::int32_t>(a.positions)[f];
    d += static_cast<double>(
        data<const float>(a.dcombine)[(t * p.experts + expert) * p.capacity + place]);
  }
  return d;
}

// Adds the gradient of a token's weights to that of its scores. A single weight that is kept of two
// is 1, whatever its score is.
void add_weights(const velo_capacity_gate_backward_args& a, const gate_problem& p, std::int64_t t,
                 const float* scores, float* dscores) {
  const auto* chosen = data<const std::int32_t>(a.indices) + t * p.k;
  double d[2] = {}, sum = 0, dot = 0;
  std::int64_t kept = 0;
  for (std::int64_t j = 0; j < p.k; ++j) {
    if (chosen[j] < 0) continue;
    const auto weight = static_cast<double>(scores[chosen[j]]);
    d[j] = gradient_of_weight(a, p, t, j);
    sum += weight, dot += d[j] * weight, ++kept;
  }
  const bool divided = p.k == 2 && sum > least_sum;
  if (divided && kept < 2) return;
  for (std::int64_t j = 0; j < p.k; ++j) {
    if (chosen[j] < 0) continue;
    double own = d[j];
    if (p.k == 2) own = divided ? (d[j] - dot / sum) / sum : d[j] / least_sum;
    float& to = dscores[chosen[j]];
    to = static_cast<float>(static_cast<double>(to) + own);
  }
}

// The gradient of the balance loss by an expert's score of a token; 0 without daux_loss.
double* balance_of(const velo_capacity_gate_backward_args& a, const gate_problem& p,
                   core::arena& scratch) {
  auto* balance = scratch.take<double>(static_cast<std::size_t>(p.experts));
  std::fill_n(balance, p.experts, 0.0);
  if (a.daux_loss == nullptr) return balance;
  const auto* chosen = data<const std::int32_t>(a.indices);
  for (std::int64_t t = 0; t < p.tokens; ++t) balance[expert_of(chosen[t * p.k])] += 1;
  const double tokens = static_cast<double>(p.tokens);
  const double factor = static_cast<double>(*data<const float>(a.daux_loss)) *
                        static_cast<double>(p.experts) / (tokens * tokens);
  for (std::int64_t e = 0; e < p.experts; ++e) balance[e] *= factor;
  return balance;
}

template <class T>
void backward(const velo_capacity_gate_backward_args& a, const gate_problem& p,
              const topk_router_kernels& kernels, core::execution& on) {
  require_choices(*a.indices, p.experts);
  require_positions(a, p);
  const std::int64_t n = p.experts;
  const double* balance = balance_of(a, p, on.scratch);
  const double dz = a.dz_loss == nullptr ? 0
                                         : 2 * static_cast<double>(*data<const float>(a.dz_loss)) /
                                               static_cast<double>(p.tokens);
  const auto step = static_cast<std::size_t>(n);
  auto* areas = on.scratch.take<float>(2 * step * static_cast<std::size_t>(on.threads.threads()));
  const row_slices slices = slice_rows(p.tokens, n * static_cast<std::int64_t>(sizeof(float)));
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int thread) {
    float* scores = areas + 2 * step * static_cast<std::size_t>(thread);
    float* dscores = scores + step;
    for (std::int64_t t = slices.begin(task); t < slices.begin(task) + slices.count(task); ++t) {
      const T* logits = data<const T>(a.logits) + t * n;
      float largest = 0, sum = 0;
      score(kernels, router_row<T>{logits, n, false, scores, &largest, &sum});
      const double lse = static_cast<double>(largest) + std::log(static_cast<double>(sum));
      for (std::int64_t e = 0; e < n; ++e) dscores[e] = static_cast<float>(balance[e]);
      add_weights(a, p, t, scores, dscores);
      kernels.gradient(router_gradient_row<T>{
          logits, n, false, scores, dscores, static_cast<float>(lse),
          static_cast<float>(dz == 0 ? 0 : dz * lse), data<T>(a.dlogits) + t * n});
    }
  });
}

// The gradient of two weights that sum to 1 is a difference of terms as large as theirs.
double terms_of(const velo_capacity_gate_backward_args& a) {
  double terms = 0;
  if (a.dweights != nullptr) terms += largest_magnitude(*a.dweights);
  if (a.dcombine != nullptr) terms += largest_magnitude(*a.dcombine);
  return terms;
}

}  // namespace

extern const operator_def capacity_gate_operator =
    define<infer,
           by_dtype<&velo_capacity_gate_args::logits, run<float>, run<simd::bf16>, run<simd::f16>>>(
        topk_router_kernel_list);
extern const operator_def capacity_gate_backward_operator = with_terms<terms_of>(
    define<infer_backward, by_dtype<&velo_capacity_gate_backward_args::logits, backward<float>,
                                    backward<simd::bf16>, backward<simd::f16>>>(
        topk_router_kernel_list));

}  // namespace velo::ops
