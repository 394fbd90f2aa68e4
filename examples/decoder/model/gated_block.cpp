// The operators of a feed-forward block in their order.
#include "examples/decoder/model/gated_block.hpp"

#include "examples/decoder/model/shared_rows.hpp"

namespace decoder {

gated_block::gated_block(const velo::context& context, const weights& from, const layer_layout& at,
                         std::int64_t inner, bool training)
    : type_(dtype_of(from.type())),
      hidden_(from.layout().widths.hidden),
      inner_(inner),
      gate_up_(context, from, at.gate_up, 2 * inner, hidden_, training),
      down_(context, from, at.down, hidden_, inner, training) {}

void gated_block::refresh(const velo::stream_ref& stream) {
  for (linear* each : {&gate_up_, &down_}) each->refresh(stream);
}

velo::tensor_view gated_block::input(const pass& now, const buffers& kept) const {
  return {kept.input.data(), type_, {now.rows(), hidden_}};
}
velo::tensor_view gated_block::gates(const pass& now, const buffers& kept) const {
  return {kept.gates.data(), type_, {now.batch.tokens(), 2 * inner_}};
}
velo::tensor_view gated_block::gated(const pass& now, const buffer& of) const {
  return {of.data(), type_, {now.batch.tokens(), inner_}};
}
std::int64_t gated_block::bytes(const pass& now, std::int64_t width) const {
  return now.room.tokens() * width * (type_.bits / 8);
}

void gated_block::make(const pass& now, const buffers& kept) const {
  if (!kept.gates)
    now.memory.make(kept.gates, bytes(now, 2 * inner_),
                    [&] { project(now, gate_up_, input(now, kept), gates(now, kept)); });
  if (!kept.gated)
    now.memory.make(kept.gated, bytes(now, inner_), [&] {
      velo::swiglu(now.stream, velo::swiglu_args().x(gates(now, kept)).y(gated(now, kept.gated)));
    });
}

void gated_block::finish(const pass& now, const buffers& kept,
                         const velo::tensor_view& branch) const {
  return_to_stream(now, down_, gated(now, kept.gated), branch);
}

void gated_block::backward(const pass& now, const velo::tensor_view& gradient,
                           const velo::tensor_view& branch, const buffers& kept,
                           bool deferred) const {
  {
    const buffer through =
        return_backward(now, down_, gated(now, kept.gated), gradient, deferred, &kept.gated);
    const velo::tensor_view dgated = gated(now, through), x = gates(now, kept);
    velo::swiglu_backward(now.stream, velo::swiglu_backward_args().dy(dgated).x(x).dx(x));
  }
  project_backward(now, gate_up_, {input(now, kept), gates(now, kept), branch}, deferred,
                   &kept.input);
  if (!deferred) kept.gates = {};
}

void gated_block::weight_gradients(const pass& now, const buffers& kept,
                                   const velo::tensor_view& gradient) const {
  return_weight_gradient(now, down_, gated(now, kept.gated), gradient);
  project_weight_gradient(now, gate_up_, input(now, kept), gates(now, kept));
}

}  // namespace decoder
