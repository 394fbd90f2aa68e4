// The rows that go to experts: where tensor ranks cut each expert, those of all of these ranks.
#include <algorithm>

#include "examples/decoder/model/experts/expert_block.hpp"
#include "examples/decoder/model/shared_rows.hpp"

namespace decoder {

std::int64_t expert_block::moved_rows(const pass& now) const {
  return ranks_->cuts_experts() ? now.batch.all_tokens() : own_rows(now);
}
std::int64_t expert_block::moved_room(const pass& now) const {
  return ranks_->cuts_experts() ? now.room.all_tokens() : own_room(now);
}
velo::tensor_view expert_block::moved_choices(const pass& now, const expert_activations& e) const {
  if (!ranks_->cuts_experts()) return choices(now, e);
  return {reinterpret_cast<std::int32_t*>(e.all_choices.data()),
          {moved_rows(now), model_.experts_per_token}};
}
velo::tensor_view expert_block::moved_weights(const pass& now, const expert_activations& e) const {
  if (!ranks_->cuts_experts()) return chosen(now, e.weights);
  return {e.all_weights.floats(), {moved_rows(now), model_.experts_per_token}};
}
// Gives each tensor rank the choices of all of them.
void expert_block::gather_choices(const pass& now, expert_activations& e) const {
  const std::int64_t each = moved_room(now) * model_.experts_per_token * 4;
  e.all_choices = now.memory.take(each, VELO_PURPOSE_ACTIVATION);
  e.all_weights = now.memory.take(each, VELO_PURPOSE_ACTIVATION);
  const velo::tensor_view all = moved_choices(now, e);
  now.parallel.tensor.gather(now.stream, choices(now, e), all);
  now.parallel.tensor.gather(now.stream, chosen(now, e.weights), moved_weights(now, e));
  auto* const counts = reinterpret_cast<std::int64_t*>(e.held.data());
  std::fill_n(counts, held_, 0);
  e.rows = 0;
  for (std::int64_t i = 0; i < all.numel(); ++i) {
    const std::int32_t expert = all.data<std::int32_t>()[i];
    if (expert < 0) continue;
    ++e.rows;
    if (!e.dispatched) ++counts[expert];
  }
}

// Each tensor rank has a part of the sums that are the gradients of inputs and weights, and adds
// the router's gradient of its own rows.
void expert_block::return_parts(const pass& now, layer_activations& kept,
                                const velo::tensor_view& dinput, const velo::tensor_view& dweights,
                                const velo::tensor_view& branch, bool deferred) const {
  const range own = now.parallel.tensor.part(now.batch.all_tokens());
  now.parallel.tensor.sum_parts(now.stream, dweights);
  const summed_rows summed(now, branch);
  dispatch_backward(now, kept.expert, dinput, summed.view());
  free_routing(now, kept.expert);
  const std::int64_t k = model_.experts_per_token;
  route_backward(now, kept, {dweights.data<float>() + own.begin * k, {own.count, k}},
                 {summed.view().data<std::byte>() + own.begin * hidden_ * (type_.bits / 8),
                  type_,
                  {own.count, hidden_}},
                 deferred);
  summed.finish();
}

}  // namespace decoder
