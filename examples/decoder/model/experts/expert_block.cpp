// The way to the experts and back, and the experts.
#include "examples/decoder/model/experts/expert_block.hpp"

#include <algorithm>
#include <optional>
#include <utility>

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

// A rank keeps what its experts compute if a load is set and all of them have less. A dry run has
// no rows and counts the memory of a rank that keeps it.
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

void expert_block::weight_gradients(const pass& now, const layer_activations& kept) const {
  const expert_activations& e = kept.expert;
  down_gradient(now, kept, e.output_gradient);
  up_gradient(now, kept);
  router_.weight_gradient(now.stream, input(now, kept),
                          stream(now, e.logits_gradient, model_.experts));
}

}  // namespace decoder
