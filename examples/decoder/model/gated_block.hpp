// A feed-forward block, down(swiglu(gate_up(x))), of a layer without experts, or the shared expert
// of a layer with them, which every token goes to.
//
// Tensor ranks share both matrices: a rank has a part of the inner width. Cost: three products of
// [rows, hidden] and [inner, hidden] in the forward pass, and two collectives over tensor ranks.
#pragma once

#include "examples/decoder/model/activations.hpp"
#include "examples/decoder/model/linear.hpp"

namespace decoder {

class gated_block {
 public:
  // inner: the width of this rank's part.
  gated_block(const velo::context& context, const weights& from, const layer_layout& at,
              std::int64_t inner, bool training);

  void refresh(const velo::stream_ref& stream);

  // The block's input, rows [rows, hidden] of the stream, and the activations that it keeps:
  // [tokens, 2 inner] and [tokens, inner].
  struct buffers {
    buffer &input, &gates, &gated;
  };
  // Computes the missing ones of gates and gated.
  void make(const pass& now, const buffers& kept) const;
  // Writes the output, rows of the stream.
  void finish(const pass& now, const buffers& kept, const velo::tensor_view& branch) const;

  // Writes the gradient of the input to `branch`, and adds to the weights' gradients; with
  // `deferred` these are left to weight_gradients, which needs all three buffers, else they are
  // empty afterwards.
  void backward(const pass& now, const velo::tensor_view& gradient, const velo::tensor_view& branch,
                const buffers& kept, bool deferred) const;
  void weight_gradients(const pass& now, const buffers& kept,
                        const velo::tensor_view& gradient) const;

 private:
  velo::tensor_view input(const pass& now, const buffers& kept) const;
  velo::tensor_view gates(const pass& now, const buffers& kept) const;
  velo::tensor_view gated(const pass& now, const buffer& of) const;
  std::int64_t bytes(const pass& now, std::int64_t width) const;

  velo_dtype type_;
  std::int64_t hidden_, inner_;
  linear gate_up_, down_;
};

}  // namespace decoder
