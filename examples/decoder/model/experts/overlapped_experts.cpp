// The parts of both passes through the experts, between which other work may go on.
//
// They are the operators of expert_block.cpp with the same arguments, so results have the same
// bits; weight gradients come later, after the message that returns gradients has begun, so more
// buffers are alive at a time.
#include <utility>

#include "examples/decoder/model/experts/expert_block.hpp"

namespace decoder {

velo::tensor_view expert_block::branch_of(const pass& now, const expert_activations& e) const {
  return {e.branch.data(), type_, {now.rows(), hidden_}};
}

// The rows that this rank writes of `branch`.
velo::tensor_view expert_block::written_of(const pass& now, const expert_activations& e) const {
  return is_shared(now) ? stream(now, e.own_branch, hidden_) : branch_of(now, e);
}
velo::tensor_view expert_block::take_written(const pass& now, expert_activations& e) const {
  const std::int64_t row = hidden_ * (type_.bits / 8);
  e.branch = now.memory.take(now.room_of_rows() * row, VELO_PURPOSE_WORKSPACE);
  if (is_shared(now)) e.own_branch = now.memory.take(own_room(now) * row, VELO_PURPOSE_WORKSPACE);
  return written_of(now, e);
}

void expert_block::send_back(const pass& now, layer_activations& kept) const {
  const velo::tensor_view written = take_written(now, kept.expert);
  combine_own(now, kept.expert, written);
}

// Gathers the rows of all tensor ranks, and returns the branch.
velo::tensor_view expert_block::sent_back(const pass& now, const layer_activations& kept) const {
  const velo::tensor_view all = branch_of(now, kept.expert);
  if (is_shared(now)) now.parallel.tensor.gather(now.stream, written_of(now, kept.expert), all);
  return all;
}

void expert_block::send_gradient(const pass& now, const velo::tensor_view& gradient,
                                 layer_activations& kept) const {
  expert_activations& e = kept.expert;
  e.dweights =
      now.memory.take(own_room(now) * model_.experts_per_token * 4, VELO_PURPOSE_WORKSPACE);
  e.output_gradient = now.memory.take(bytes(e, now, hidden_), VELO_PURPOSE_WORKSPACE);
  combine_backward(now, own_of(now, gradient.data<std::byte>()), e,
                   rows(e, e.output_gradient, hidden_), chosen(now, e.dweights));
}

void expert_block::compute_gradient(const pass& now, layer_activations& kept) const {
  expert_activations& e = kept.expert;
  e.output = {};
  to_gates(now, kept, e.output_gradient,
           now.memory.take(bytes(e, now, width_), VELO_PURPOSE_WORKSPACE));
  e.input_gradient = now.memory.take(bytes(e, now, hidden_), VELO_PURPOSE_WORKSPACE);
  to_input(now, kept, e.input_gradient);
}

void expert_block::send_gradient_back(const pass& now, layer_activations& kept) const {
  expert_activations& e = kept.expert;
  const velo::tensor_view written = take_written(now, e);
  dispatch_backward(now, e, rows(e, e.input_gradient, hidden_), written);
}

void expert_block::expert_gradients(const pass& now, layer_activations& kept) const {
  expert_activations& e = kept.expert;
  down_gradient(now, kept, e.output_gradient);
  e.output_gradient = {};
  kept.gated = {};
  up_gradient(now, kept);
  e.input = {};
  kept.gates = {};
}

// Adds the router's part, and returns the gradient of the block's input.
velo::tensor_view expert_block::finish_gradient(const pass& now, layer_activations& kept) const {
  expert_activations& e = kept.expert;
  free_routing(now, e);
  e.input_gradient = {};
  route_backward(now, kept, chosen(now, e.dweights), written_of(now, e), false);
  e.dweights = {};
  kept.feed_forward_input = {};
  return sent_back(now, kept);
}

}  // namespace decoder
