// The experts of a layer in place of its feed-forward block. A token's row goes to the experts that
// the router chooses for it, and their results are weighted and added up:
//
//   logits = router(x);  weights, choices = topk_router(logits, bias)
//   branch = sum over the choices j: weights[j] * down_j(swiglu(gate_up_j(x)))
//
// The router chooses the experts with the largest score + bias, if there is a bias; their weights
// have none. It chooses among the experts of the best groups, if there are groups: those with the
// largest sum of their two best experts.
//
// A rank that has all experts permutes its rows into expert order and back; where experts are dealt
// out velo's dispatcher does the same over ranks. Both have the rows of an expert by token and
// choice, and add up a token's rows in the order of its choices.
//
// Rows of padding go to no expert: their choices are negative, and they count nowhere.
//
// Experts with a capacity drop choices in training passes, also on a rank that has all experts;
// `choices` and `counts` keep these, so the balance loss counts them. Other passes drop none, so
// that a validation's loss does not depend on the windows that come together.
//
// Without sequence parallelism tensor ranks have the same rows. Each then gives a part of them to
// the experts, and the ranks gather the results; so a router's gradient is a sum over tensor ranks.
//
// Tensor ranks may cut each expert (etp). Each rank then takes the rows and choices of all of them
// to its part of the experts, and the ranks sum the results as those of a feed-forward block. The
// router still has the rank's own rows.
//
// The balance loss counts the choices of the whole micro-batch, over all ranks that have some of
// its tokens, so its gradient does not depend on how these are dealt out. Its value is not part of
// the loss that a step reports. Cost: k grouped rows a token, and over ranks an exchange of these
// rows in each direction of each pass.
#pragma once

#include <vector>

#include "examples/decoder/model/activations.hpp"
#include "examples/decoder/model/experts/grouped_linear.hpp"
#include "examples/decoder/model/linear.hpp"

namespace decoder {

class expert_block {
 public:
  expert_block(const velo::context& context, const weights& from, const model_settings& model,
               const layer_layout& at, const expert_parallel& ranks, bool training,
               std::size_t layer);

  void refresh(const velo::stream_ref& stream);

  // Computes the missing activations from kept.feed_forward_input.
  void make(const pass& now, layer_activations& kept) const;
  // Writes the weighted sums [rows, hidden].
  void combine(const pass& now, const layer_activations& kept,
               const velo::tensor_view& branch) const;

  // Writes the gradient of the input to `branch`, and adds to the weights' gradients; with
  // `deferred` these are left to weight_gradients, which needs some of `kept`.
  void backward(const pass& now, const velo::tensor_view& gradient, const velo::tensor_view& branch,
                layer_activations& kept, bool deferred) const;
  void weight_gradients(const pass& now, const layer_activations& kept) const;

  // The parts of `make` and of both passes, in their order (overlapped_experts.cpp). A part called
  // with a pass whose stream queues its work needs what it reads and writes until that is done, so
  // the next part of its direction begins then.
  void choose(const pass& now, layer_activations& kept) const;
  void send(const pass& now, layer_activations& kept) const;
  void compute(const pass& now, layer_activations& kept) const;
  void send_back(const pass& now, layer_activations& kept) const;
  velo::tensor_view sent_back(const pass& now, const layer_activations& kept) const;

  void send_gradient(const pass& now, const velo::tensor_view& gradient,
                     layer_activations& kept) const;
  void compute_gradient(const pass& now, layer_activations& kept) const;
  void send_gradient_back(const pass& now, layer_activations& kept) const;
  void expert_gradients(const pass& now, layer_activations& kept) const;
  velo::tensor_view finish_gradient(const pass& now, layer_activations& kept) const;

 private:
  void keep_if_light(const pass& now, layer_activations& kept) const;

  // The router (expert_router.cpp).
  void route(const pass& now, layer_activations& kept) const;
  void call_router(const pass& now, const velo::tensor_view& logits,
                   const expert_activations& e) const;
  std::int64_t first_of(const pass& now) const;
  std::int64_t leave_out_padding(const pass& now, const expert_activations& e) const;
  void record_or_replay(const pass& now, const expert_activations& e) const;
  void set_weights(const pass& now, const expert_activations& e) const;
  void to_scores(std::vector<float>& logits) const;
  velo::router_score score() const;
  std::vector<std::int64_t> numbers(const pass& now, range rows) const;
  void route_backward(const pass& now, layer_activations& kept, const velo::tensor_view& dweights,
                      const velo::tensor_view& branch, bool deferred) const;
  void clear_padding(const pass& now, const expert_activations& e,
                     const velo::tensor_view& dlogits) const;
  std::int64_t totals(const pass& now, const expert_activations& e,
                      const velo::tensor_view& counts) const;

  // The rows that go to experts (cut_experts.cpp).
  void gather_choices(const pass& now, expert_activations& e) const;
  std::int64_t moved_rows(const pass& now) const;
  std::int64_t moved_room(const pass& now) const;
  velo::tensor_view moved_choices(const pass& now, const expert_activations& e) const;
  velo::tensor_view moved_weights(const pass& now, const expert_activations& e) const;
  void return_parts(const pass& now, layer_activations& kept, const velo::tensor_view& dinput,
                    const velo::tensor_view& dweights, const velo::tensor_view& branch,
                    bool deferred) const;

  // A dispatcher, empty where rows stay on this rank, and its routings that can be used again.
  struct row_way {
    velo::dispatcher dispatcher;
    std::vector<velo::routing> idle;
  };
  row_way& way(const pass& now) const;
  void begin_routing(const pass& now, expert_activations& e) const;
  void dispatch(const pass& now, layer_activations& kept) const;
  void combine_backward(const pass& now, const velo::tensor_view& gradient,
                        const expert_activations& e, const velo::tensor_view& drows,
                        const velo::tensor_view& dweights) const;
  void dispatch_backward(const pass& now, expert_activations& e, const velo::tensor_view& drows,
                         const velo::tensor_view& branch) const;
  void free_routing(const pass& now, expert_activations& e) const;
  void to_gates(const pass& now, const layer_activations& kept, const buffer& output,
                const buffer& through) const;
  void to_input(const pass& now, const layer_activations& kept, const buffer& input) const;
  void down_gradient(const pass& now, const layer_activations& kept, const buffer& output) const;
  void up_gradient(const pass& now, const layer_activations& kept) const;
  // Memory of the parts of both passes (overlapped_experts.cpp).
  velo::tensor_view branch_of(const pass& now, const expert_activations& e) const;
  velo::tensor_view take_written(const pass& now, expert_activations& e) const;
  velo::tensor_view written_of(const pass& now, const expert_activations& e) const;

  class moved_stream;
  class written_rows;
  void combine_own(const pass& now, const expert_activations& e,
                   const velo::tensor_view& branch) const;

  range own(const pass& now, std::int64_t all) const;
  bool is_shared(const pass& now) const;
  std::int64_t own_rows(const pass& now) const;
  std::int64_t own_room(const pass& now) const;
  velo::tensor_view own_of(const pass& now, std::byte* stream) const;
  velo::tensor_view input(const pass& now, const layer_activations& kept) const;
  std::int64_t bytes(const expert_activations& e, const pass& now, std::int64_t width) const;
  velo::tensor_view rows(const expert_activations& e, const buffer& of, std::int64_t width) const;
  velo::tensor_view stream(const pass& now, const buffer& of, std::int64_t width) const;
  velo::tensor_view choices(const pass& now, const expert_activations& e) const;
  velo::tensor_view chosen(const pass& now, const buffer& of) const;
  velo::tensor_view places(const pass& now, const expert_activations& e) const;
  velo::tensor_view counts(const expert_activations& e) const;

  model_settings model_;
  std::size_t layer_;  // of the whole model
  velo_dtype type_;
  std::int64_t hidden_, width_, held_;  // held_: experts of this rank; width_: of its parts of them
  linear router_;
  velo::tensor_view bias_;  // f32 [experts], added to the scores to choose by; of no memory: none
  grouped_linear up_, down_;
  const expert_parallel* ranks_;
  mutable row_way all_, limited_;  // limited_: drops choices beyond the capacity of experts
};

}  // namespace decoder
