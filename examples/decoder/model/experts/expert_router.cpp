// The router of an expert block: logits, choices and their weights, recorded or replayed, and the
// gradient that goes back through them.
//
// Choices of padding are made negative here, so that what follows leaves them out. Replayed choices
// get their weights from the live scores by the formulas of topk_router. Cost: that of the router's
// product and of topk_router; with a replay a pass over the scores in plain loops.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "examples/decoder/data/vocabulary.hpp"
#include "examples/decoder/model/experts/expert_block.hpp"
#include "examples/decoder/model/experts/expert_loads.hpp"
#include "examples/decoder/model/experts/step_choices.hpp"

namespace decoder {

velo::router_score expert_block::score() const {
  return model_.router == "sigmoid" ? velo::router_score::sigmoid : velo::router_score::softmax;
}

// Chooses the experts of this rank's tokens.
void expert_block::route(const pass& now, layer_activations& kept) const {
  expert_activations& e = kept.expert;
  const std::int64_t room = own_room(now), each = room * model_.experts_per_token * 4;
  const auto take = [&](std::int64_t size) {
    return now.memory.take(size, VELO_PURPOSE_ACTIVATION);
  };
  e.logits = take(room * model_.experts * (type_.bits / 8));
  e.weights = take(each);
  e.choices = take(each);
  e.counts = take(model_.experts * 8);
  e.dispatched = static_cast<bool>(way(now).dispatcher);
  if (e.dispatched || ranks_->cuts_experts()) e.held = take(held_ * 8);
  if (!e.dispatched) e.places = take(moved_room(now) * model_.experts_per_token * 4);
  const velo::tensor_view logits = stream(now, e.logits, model_.experts);
  router_.forward(now.stream, input(now, kept), logits);
  call_router(now, logits, e);
  if (now.choices != nullptr) record_or_replay(now, e);
  e.rows = own_rows(now) * model_.experts_per_token - leave_out_padding(now, e);
  if (ranks_->cuts_experts()) gather_choices(now, e);
  if (now.loads != nullptr)
    now.loads->add(layer_, reinterpret_cast<const std::int64_t*>(e.counts.data()));
  if (e.dispatched) begin_routing(now, e);
}

void expert_block::call_router(const pass& now, const velo::tensor_view& logits,
                               const expert_activations& e) const {
  const velo::tensor_view counts(reinterpret_cast<std::int64_t*>(e.counts.data()),
                                 {model_.experts});
  auto call = velo::topk_router_args()
                  .logits(logits)
                  .weights(chosen(now, e.weights))
                  .indices(choices(now, e))
                  .counts(counts)
                  .k(model_.experts_per_token)
                  .score_function(score())
                  .normalize(model_.router_normalize)
                  .scale(model_.router_scale)
                  .num_groups(model_.router_groups)
                  .kept_groups(model_.router_groups_kept)
                  .group_score(velo::group_score::top2_sum);
  if (model_.router_bias) call.expert_bias(bias_);
  velo::topk_router(now.stream, call);
}

// The place of this rank's own rows among the tokens of all tensor ranks.
std::int64_t expert_block::first_of(const pass& now) const {
  const tensor_parallel& tensor = now.parallel.tensor;
  return tensor.is_alone() ? 0 : tensor.part(now.batch.all_tokens()).begin;
}

// Returns how many choices take no row.
std::int64_t expert_block::leave_out_padding(const pass& now, const expert_activations& e) const {
  const std::int64_t k = model_.experts_per_token, rows = own_rows(now);
  const std::int32_t* const symbols = now.inputs + first_of(now);
  auto* const counts = reinterpret_cast<std::int64_t*>(e.counts.data());
  std::int64_t left_out = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (symbols[row] != pad) continue;
    auto* const chosen = reinterpret_cast<std::int32_t*>(e.choices.data()) + row * k;
    for (std::int64_t i = 0; i < k; ++i) {
      --counts[chosen[i]];
      chosen[i] = -1 - chosen[i];
    }
    std::fill_n(e.weights.floats() + row * k, k, 0.0f);
    left_out += k;
  }
  return left_out;
}

// The numbers of rows' tokens in the step. Rows are those of one sequence after another, in
// the order in which this rank holds them.
std::vector<std::int64_t> expert_block::numbers(const pass& now, range rows) const {
  const std::int64_t length = now.batch.length;
  const held_rows& held = now.share().rows;
  const std::vector<std::int64_t> positions = held.positions();
  std::vector<std::int64_t> all;
  for (std::int64_t row = rows.begin; row < rows.begin + rows.count; ++row)
    all.push_back(now.first_token + row / length * held.sequence() +
                  positions[static_cast<std::size_t>(row % length)]);
  return all;
}

void expert_block::record_or_replay(const pass& now, const expert_activations& e) const {
  const std::int64_t k = model_.experts_per_token;
  auto* own = reinterpret_cast<std::int32_t*>(e.choices.data());
  for (const std::int64_t token : numbers(now, {first_of(now), own_rows(now)})) {
    std::int32_t* const all = now.choices->of(layer_, token);
    if (now.choices->replays())
      std::copy_n(all, k, own);
    else
      std::copy_n(own, k, all);
    own += k;
  }
  if (now.choices->replays()) set_weights(now, e);
}

// Computes weights and counts of replayed choices from the router's scores.
void expert_block::set_weights(const pass& now, const expert_activations& e) const {
  const std::int64_t experts = model_.experts, k = model_.experts_per_token;
  const auto* const chosen = reinterpret_cast<const std::int32_t*>(e.choices.data());
  auto* const counts = reinterpret_cast<std::int64_t*>(e.counts.data());
  std::fill_n(counts, experts, 0);
  std::vector<float> scores(static_cast<std::size_t>(experts));
  const velo::tensor_view exact(scores.data(), {1, experts});
  for (std::int64_t row = 0; row < own_rows(now); ++row) {
    const velo::tensor_view logits(e.logits.data() + row * experts * (type_.bits / 8), type_,
                                   {1, experts});
    velo::cast(now.stream, velo::cast_args().x(logits).y(exact).dtype(velo::element::float32));
    to_scores(scores);
    float* const weights = e.weights.floats() + row * k;
    for (std::int64_t i = 0; i < k; ++i) {
      const auto expert = static_cast<std::size_t>(chosen[row * k + i]);
      weights[i] = scores[expert];
      ++counts[expert];
    }
    constexpr double least_sum = 1e-20;  // as topk_router has it
    const double sum =
        model_.router_normalize ? std::accumulate(weights, weights + k, least_sum) : 1;
    for (std::int64_t i = 0; i < k; ++i)
      weights[i] = static_cast<float>(model_.router_scale * weights[i] / sum);
  }
}

// Turns a token's logits into its scores.
void expert_block::to_scores(std::vector<float>& logits) const {
  if (model_.router == "sigmoid") {
    for (float& each : logits) each = 1 / (1 + std::exp(-each));
    return;
  }
  const float most = *std::max_element(logits.begin(), logits.end());
  for (float& each : logits) each = std::exp(each - most);
  const float sum = std::accumulate(logits.begin(), logits.end(), 0.0f);
  for (float& each : logits) each /= sum;
}

// Writes the choices of the whole micro-batch by expert, and returns its tokens.
std::int64_t expert_block::totals(const pass& now, const expert_activations& e,
                                  const velo::tensor_view& counts) const {
  auto* const all = counts.data<std::int64_t>();
  std::memcpy(all, e.counts.data(), static_cast<std::size_t>(model_.experts) * 8);
  ranks_->sum_counts(now.stream, counts);
  return std::accumulate(all, all + model_.experts, std::int64_t{0}) / model_.experts_per_token;
}

// Adds the router's part to the gradient of the input. Gradients of the ranks are averaged, but
// their balance losses are parts of a sum: so each is multiplied by the number of these ranks.
void expert_block::route_backward(const pass& now, layer_activations& kept,
                                  const velo::tensor_view& dweights,
                                  const velo::tensor_view& branch, bool deferred) const {
  expert_activations& e = kept.expert;
  const std::int64_t experts = model_.experts;
  buffer through = now.memory.take(own_room(now) * experts * (type_.bits / 8),
                                   deferred ? VELO_PURPOSE_ACTIVATION : VELO_PURPOSE_WORKSPACE);
  const buffer sums = now.memory.take(experts * 8, VELO_PURPOSE_WORKSPACE);
  const velo::tensor_view dlogits = stream(now, through, experts),
                          counts(reinterpret_cast<std::int64_t*>(sums.data()), {experts});
  const auto balance = static_cast<float>(model_.balance_loss * now.scale * ranks_->means());
  const velo::tensor_view dbalance(&balance, {});
  auto call = velo::topk_router_backward_args()
                  .logits(stream(now, e.logits, experts))
                  .indices(choices(now, e))
                  .dweights(dweights)
                  .dlogits(dlogits)
                  .score_function(score())
                  .normalize(model_.router_normalize)
                  .scale(model_.router_scale);
  if (model_.balance_loss > 0)
    call.total_tokens(totals(now, e, counts)).counts(counts).daux_loss(dbalance);
  velo::topk_router_backward(now.stream, call);
  clear_padding(now, e, dlogits);
  if (!deferred) router_.weight_gradient(now.stream, input(now, kept), dlogits);
  router_.add_input_gradient(now.stream, dlogits, branch);
  if (deferred) e.logits_gradient = std::move(through);
}

// Rows of padding have no part in the balance loss.
void expert_block::clear_padding(const pass& now, const expert_activations& e,
                                 const velo::tensor_view& dlogits) const {
  const std::int64_t row_bytes = model_.experts * (type_.bits / 8);
  const auto* const chosen = reinterpret_cast<const std::int32_t*>(e.choices.data());
  for (std::int64_t row = 0; row < own_rows(now); ++row)
    if (chosen[row * model_.experts_per_token] < 0)
      std::memset(dlogits.data<std::byte>() + row * row_bytes, 0,
                  static_cast<std::size_t>(row_bytes));
}

}  // namespace decoder
