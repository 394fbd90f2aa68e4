// Which of an operator's tensors each buffer of a functional host is.
//
// MindSpore and XLA know inputs and outputs by position only. In field order:
// - inputs are the tensors the operator reads, outputs those it writes; a tensor it both reads and
//   writes (the weights of apply_fused_adamw) is an input and an output;
// - but a tensor read only when the attribute `accumulate` is set (c of matmul) is an output alone;
// - all required tensors, and as many of the optional ones as there are buffers left, the first
//   ones first; optional outputs come into question when all optional inputs are there (of XLA,
//   which counts the two apart, each for itself).
// Any other choice is given by name: fields = "x,gamma->y,rstd". An output may be named before the
// arrow too: its old value is then an input, which is how these hosts accumulate. A list of tensors
// is always named, with its length: fields = "grads[3],params[3]->params[3]".
//
// Where an input and an output are one tensor to velo and two buffers to the host, the input is
// copied first; hosts that reuse the buffer (donation) pay nothing.
#pragma once

#include <string_view>

#include "capi/adapters/call.hpp"

namespace velo::adapters {

struct placement {
  int input_count = 0, output_count = 0;
  int inputs[max_buffers];  // the field of each buffer; a list's stand together
  int outputs[max_buffers];
};

placement place_named(const op_info& op, std::string_view fields);
placement place_counted(const op_info& op, int inputs, int outputs);
placement place_total(const op_info& op, int buffers);  // inputs and outputs in one list

// Puts the buffers into the call, and copies what has to be copied. buffers: inputs, then outputs.
// To be called after the attributes are in.
void put_buffers(call& made, const placement& where, const velo_tensor* buffers);

}  // namespace velo::adapters
