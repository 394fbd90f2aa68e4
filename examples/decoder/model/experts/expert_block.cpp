// The router, the way to the experts and back, and the experts.
#include "examples/decoder/model/experts/expert_block.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "examples/decoder/data/vocabulary.hpp"
#include "examples/decoder/model/experts/expert_loads.hpp"
#include "examples/decoder/model/experts/step_choices.hpp"
#include "examples/decoder/model/recompute.hpp"
#include "examples/decoder/model/shared_rows.hpp"

namespace decoder {

expert_block::expert_block(const velo::context& context, const weights& from,
                           const model_settings& m, const layer_layout& at,
                           const expert_parallel& ranks, bool training, std::size_t layer)
    : model_(m),
      layer_(layer),
      type_(dtype_of(from.type())),
      hidden_(m.hidden),
      width_(from.layout().widths.expert_inner),
      held_(from.layout().widths.experts),
      router_(context, from, at.router, m.experts, hidden_, training),
      up_(context, from, at.experts_up, {held_, 2 * width_, hidden_}, training),
      down_(context, from, at.experts_down, {held_, hidden_, width_}, training),
      ranks_(&ranks),
      all_{ranks.dispatcher(m), {}},
      limited_{ranks.limited_dispatcher(m), {}} {
  if (m.router_bias) bias_ = from.score_bias_of(layer);
}

void expert_block::refresh(const velo::stream_ref& stream) {
  router_.refresh(stream);
  for (grouped_linear* each : {&up_, &down_}) each->refresh(stream);
}

velo::router_score expert_block::score() const {
  return model_.router == "sigmoid" ? velo::router_score::sigmoid : velo::router_score::softmax;
}

// The bytes of so many columns of this rank's expert rows, which may be none. Of its own rows there
// is room for padding, too, so that a step takes the same memory each time.
std::int64_t expert_block::bytes(const expert_activations& e, const pass& now,
                                 std::int64_t width) const {
  const std::int64_t room = e.dispatched ? e.rows : moved_room(now) * model_.experts_per_token;
  return std::max<std::int64_t>(room, 1) * width * (type_.bits / 8);
}

// The rows of this rank among those of its residual stream, which it may share with tensor ranks.
range expert_block::own(const pass& now, std::int64_t all) const {
  const tensor_parallel& tensor = now.parallel.tensor;
  return is_shared(now) ? tensor.part(all) : range{0, all};
}
bool expert_block::is_shared(const pass& now) const {
  return !now.parallel.tensor.is_alone() && !now.parallel.tensor.cuts_rows();
}
std::int64_t expert_block::own_rows(const pass& now) const {
  return own(now, now.rows()).count;
}
std::int64_t expert_block::own_room(const pass& now) const {
  return own(now, now.room_of_rows()).count;
}
// This rank's part of a tensor [rows of the stream, hidden].
velo::tensor_view expert_block::own_of(const pass& now, std::byte* stream) const {
  const range mine = own(now, now.rows());
  return {stream + mine.begin * hidden_ * (type_.bits / 8), type_, {mine.count, hidden_}};
}
velo::tensor_view expert_block::input(const pass& now, const layer_activations& kept) const {
  return own_of(now, kept.feed_forward_input.data());
}

velo::tensor_view expert_block::rows(const expert_activations& e, const buffer& of,
                                     std::int64_t width) const {
  return {of.data(), type_, {e.rows, width}};
}
velo::tensor_view expert_block::stream(const pass& now, const buffer& of,
                                       std::int64_t width) const {
  return {of.data(), type_, {own_rows(now), width}};
}
velo::tensor_view expert_block::choices(const pass& now, const expert_activations& e) const {
  return {reinterpret_cast<std::int32_t*>(e.choices.data()),
          {own_rows(now), model_.experts_per_token}};
}
velo::tensor_view expert_block::chosen(const pass& now, const buffer& of) const {
  return {of.floats(), {own_rows(now), model_.experts_per_token}};
}
velo::tensor_view expert_block::places(const pass& now, const expert_activations& e) const {
  return {reinterpret_cast<std::int32_t*>(e.places.data()),
          {moved_rows(now) * model_.experts_per_token}};
}

// The rows of each expert of this rank.
velo::tensor_view expert_block::counts(const expert_activations& e) const {
  const buffer& of = e.held ? e.held : e.counts;
  return {reinterpret_cast<std::int64_t*>(of.data()), {held_}};
}

void expert_block::make(const pass& now, layer_activations& kept) const {
  choose(now, kept);
  send(now, kept);
  compute(now, kept);
}

void expert_block::choose(const pass& now, layer_activations& kept) const {
  if (kept.expert.logits) return;
  route(now, kept);
  keep_if_light(now, kept);
}
void expert_block::send(const pass& now, layer_activations& kept) const {
  if (!kept.expert.input) dispatch(now, kept);
}

void expert_block::compute(const pass& now, layer_activations& kept) const {
  expert_activations& e = kept.expert;
  if (!kept.gates)
    now.memory.make(kept.gates, bytes(e, now, 2 * width_), [&] {
      up_.forward(now.stream, counts(e), rows(e, e.input, hidden_),
                  rows(e, kept.gates, 2 * width_));
    });
  if (!kept.gated)
    now.memory.make(kept.gated, bytes(e, now, width_), [&] {
      velo::swiglu(
          now.stream,
          velo::swiglu_args().x(rows(e, kept.gates, 2 * width_)).y(rows(e, kept.gated, width_)));
    });
  if (!e.output)
    now.memory.make(e.output, bytes(e, now, hidden_), [&] {
      down_.forward(now.stream, counts(e), rows(e, kept.gated, width_), rows(e, e.output, hidden_));
    });
}

// Where a load is set, a rank whose experts all have less keeps what they compute. A dry run, which
// has no rows, counts the memory of a rank that keeps it.
void expert_block::keep_if_light(const pass& now, layer_activations& kept) const {
  const expert_activations& e = kept.expert;
  if (e.recompute_load == 0) return;
  const double limit = recompute_limit(moved_rows(now), ranks_->ranks(), model_.experts_per_token,
                                       model_.experts, e.recompute_load);
  const velo::tensor_view rows = counts(e);
  const auto* const first = rows.data<const std::int64_t>();
  const bool is_busy =
      std::any_of(first, first + (now.memory.is_dry_run() ? 0 : held_),
                  [&](std::int64_t of) { return static_cast<double>(of) > limit; });
  if (is_busy) return;
  for (buffer* each : {&kept.gates, &kept.gated, &kept.expert.output}) each->keep();
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
  choose(now, logits, e);
  if (now.choices != nullptr) record_or_replay(now, e);
  e.rows = own_rows(now) * model_.experts_per_token - leave_out_padding(now, e);
  if (ranks_->cuts_experts()) gather_choices(now, e);
  if (now.loads != nullptr)
    now.loads->add(layer_, reinterpret_cast<const std::int64_t*>(e.counts.data()));
  if (e.dispatched) begin_routing(now, e);
}

void expert_block::choose(const pass& now, const velo::tensor_view& logits,
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

// The way of a pass's rows to the experts.
expert_block::row_way& expert_block::way(const pass& now) const {
  return now.limits && limited_.dispatcher ? limited_ : all_;
}

// Gives the choices to the other ranks, drops those beyond capacity, and gets the counts of this
// rank's experts.
void expert_block::begin_routing(const pass& now, expert_activations& e) const {
  row_way& by = way(now);
  if (!by.idle.empty()) {
    e.routing = std::move(by.idle.back());
    by.idle.pop_back();
  } else {
    e.routing = velo::routing::create(by.dispatcher);
  }
  const bool drops = &by == &limited_, placed = drops && !model_.capacity_by_rank;
  const range all = {ranks_->cuts_experts() ? 0 : first_of(now), moved_rows(now)};
  const std::vector<std::int64_t> tokens = placed ? numbers(now, all) : std::vector<std::int64_t>();
  const velo::tensor_view weights = moved_weights(now, e),
                          places(tokens.data(), {static_cast<std::int64_t>(tokens.size())});
  e.routing.set(now.stream, moved_choices(now, e),
                drops && model_.capacity_drop == "probability" ? weights.get() : nullptr,
                placed ? places.get() : nullptr);
  e.rows = e.routing.rows_of(reinterpret_cast<std::int64_t*>(e.held.data()), held_);
}

// The rows that go to experts: this rank's, or those of all tensor ranks.
class expert_block::moved_stream {
 public:
  moved_stream(const expert_block& of, const pass& now, const buffer& stream)
      : moved_stream(of, now, stream.data()) {}
  moved_stream(const expert_block& of, const pass& now, const velo::tensor_view& stream)
      : moved_stream(of, now, stream.data<std::byte>()) {}
  velo::tensor_view view() const { return all_ ? all_->view() : own_; }

 private:
  moved_stream(const expert_block& of, const pass& now, std::byte* stream)
      : own_(of.own_of(now, stream)) {
    if (of.ranks_->cuts_experts())
      all_.emplace(now, velo::tensor_view(stream, of.type_, {now.rows(), of.hidden_}));
  }

  const velo::tensor_view own_;
  std::optional<all_rows> all_;
};

void expert_block::dispatch(const pass& now, layer_activations& kept) const {
  expert_activations& e = kept.expert;
  now.memory.make(e.input, bytes(e, now, hidden_), [&] {
    const moved_stream moved(*this, now, kept.feed_forward_input);
    const velo::tensor_view x = moved.view();
    const velo::tensor_view to = rows(e, e.input, hidden_);
    if (e.dispatched) {
      way(now).dispatcher.dispatch(now.stream, e.routing, x, to);
      return;
    }
    velo::moe_token_permute(now.stream, velo::moe_token_permute_args()
                                            .tokens(x)
                                            .indices(moved_choices(now, e))
                                            .permuted(to)
                                            .sorted_indices(places(now, e))
                                            .num_out_tokens(e.rows - places(now, e).numel())
                                            .num_experts(model_.experts));
  });
}

// The rows that this rank writes; `finish` gathers those of the other tensor ranks behind them.
class expert_block::written_rows {
 public:
  written_rows(const expert_block& of, const pass& now, const velo::tensor_view& all)
      : now_(now), all_(all), own_(all), is_shared_(of.is_shared(now)) {
    if (!is_shared_) return;
    memory_ = now.memory.take(of.own_room(now) * of.hidden_ * (of.type_.bits / 8),
                              VELO_PURPOSE_WORKSPACE);
    own_ = {memory_.data(), of.type_, {of.own_rows(now), of.hidden_}};
  }
  const velo::tensor_view& view() const { return own_; }
  void finish() const {
    if (is_shared_) now_.parallel.tensor.gather(now_.stream, own_, all_);
  }

 private:
  const pass& now_;
  buffer memory_;
  const velo::tensor_view all_;
  velo::tensor_view own_;
  bool is_shared_;
};

void expert_block::combine(const pass& now, const layer_activations& kept,
                           const velo::tensor_view& branch) const {
  if (ranks_->cuts_experts()) {
    const summed_rows summed(now, branch);
    combine_own(now, kept.expert, summed.view());
    return summed.finish();
  }
  const written_rows written(*this, now, branch);
  combine_own(now, kept.expert, written.view());
  written.finish();
}

void expert_block::combine_own(const pass& now, const expert_activations& e,
                               const velo::tensor_view& branch) const {
  const velo::tensor_view from = rows(e, e.output, hidden_), weights = moved_weights(now, e);
  if (e.dispatched) {
    way(now).dispatcher.combine(now.stream, e.routing, from, weights.get(), branch);
    return;
  }
  velo::moe_token_unpermute(now.stream, velo::moe_token_unpermute_args()
                                            .permuted(from)
                                            .sorted_indices(places(now, e))
                                            .probs(weights)
                                            .tokens(branch));
}

void expert_block::backward(const pass& now, const velo::tensor_view& gradient,
                            const velo::tensor_view& branch, layer_activations& kept,
                            bool deferred) const {
  expert_activations& e = kept.expert;
  const auto take = [&](std::int64_t width) {
    return now.memory.take(bytes(e, now, width),
                           deferred ? VELO_PURPOSE_ACTIVATION : VELO_PURPOSE_WORKSPACE);
  };
  const buffer dweights =
      now.memory.take(moved_room(now) * model_.experts_per_token * 4, VELO_PURPOSE_WORKSPACE);
  const velo::tensor_view all_dweights(dweights.floats(),
                                       {moved_rows(now), model_.experts_per_token});
  {
    buffer returned = take(hidden_);
    const moved_stream moved(*this, now, gradient);
    combine_backward(now, moved.view(), e, rows(e, returned, hidden_), all_dweights);
    e.output = {};
    if (!deferred) down_gradient(now, kept, returned);
    if (!deferred) kept.gated = {};
    to_gates(now, kept, returned, take(width_));
    if (deferred) e.output_gradient = std::move(returned);
  }
  if (!deferred) up_gradient(now, kept);
  if (!deferred) e.input = {};
  const buffer through = take(hidden_);
  to_input(now, kept, through);
  if (!deferred) kept.gates = {};
  const velo::tensor_view dinput = rows(e, through, hidden_);
  if (ranks_->cuts_experts())
    return return_parts(now, kept, dinput, all_dweights, branch, deferred);
  const written_rows written(*this, now, branch);
  dispatch_backward(now, e, dinput, written.view());
  free_routing(now, e);
  route_backward(now, kept, all_dweights, written.view(), deferred);
  written.finish();
}

// Turns the gates into their gradient; `through` is room for that of `gated`.
void expert_block::to_gates(const pass& now, const layer_activations& kept, const buffer& output,
                            const buffer& through) const {
  const expert_activations& e = kept.expert;
  const velo::tensor_view gates = rows(e, kept.gates, 2 * width_),
                          dgated = rows(e, through, width_);
  down_.input_gradient(now.stream, counts(e), rows(e, output, hidden_), dgated);
  velo::swiglu_backward(now.stream, velo::swiglu_backward_args().dy(dgated).x(gates).dx(gates));
}
void expert_block::to_input(const pass& now, const layer_activations& kept,
                            const buffer& input) const {
  const expert_activations& e = kept.expert;
  up_.input_gradient(now.stream, counts(e), rows(e, kept.gates, 2 * width_),
                     rows(e, input, hidden_));
}
void expert_block::down_gradient(const pass& now, const layer_activations& kept,
                                 const buffer& output) const {
  const expert_activations& e = kept.expert;
  down_.weight_gradient(now.stream, counts(e), rows(e, kept.gated, width_),
                        rows(e, output, hidden_));
}
void expert_block::up_gradient(const pass& now, const layer_activations& kept) const {
  const expert_activations& e = kept.expert;
  up_.weight_gradient(now.stream, counts(e), rows(e, e.input, hidden_),
                      rows(e, kept.gates, 2 * width_));
}

void expert_block::combine_backward(const pass& now, const velo::tensor_view& gradient,
                                    const expert_activations& e, const velo::tensor_view& drows,
                                    const velo::tensor_view& dweights) const {
  const velo::tensor_view from = rows(e, e.output, hidden_), weights = moved_weights(now, e);
  if (e.dispatched) {
    way(now).dispatcher.combine_backward(now.stream, e.routing, gradient, from, weights, drows,
                                         dweights);
    return;
  }
  velo::moe_token_unpermute_backward(now.stream,
                                     velo::moe_token_unpermute_backward_args()
                                         .dy(gradient)
                                         .permuted(from)
                                         .sorted_indices(places(now, e))
                                         .probs(weights)
                                         .dpermuted(drows)
                                         .dprobs(dweights)
                                         .num_out_tokens(e.rows - places(now, e).numel()));
}

void expert_block::dispatch_backward(const pass& now, expert_activations& e,
                                     const velo::tensor_view& drows,
                                     const velo::tensor_view& branch) const {
  if (e.dispatched) {
    way(now).dispatcher.dispatch_backward(now.stream, e.routing, drows, branch);
    return;
  }
  velo::moe_token_permute_backward(now.stream, velo::moe_token_permute_backward_args()
                                                   .dpermuted(drows)
                                                   .sorted_indices(places(now, e))
                                                   .dtokens(branch)
                                                   .tokens(moved_rows(now)));
}

// To be called when the work of dispatch_backward is done.
void expert_block::free_routing(const pass& now, expert_activations& e) const {
  if (e.dispatched) way(now).idle.push_back(std::move(e.routing));
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

void expert_block::weight_gradients(const pass& now, const layer_activations& kept) const {
  const expert_activations& e = kept.expert;
  down_gradient(now, kept, e.output_gradient);
  up_gradient(now, kept);
  router_.weight_gradient(now.stream, input(now, kept),
                          stream(now, e.logits_gradient, model_.experts));
}

}  // namespace decoder
