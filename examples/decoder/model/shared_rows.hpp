// Rows that tensor ranks share, for the length of a product: all rows from those of the residual
// stream, and sums of products that go back to it.
//
// Without tensor ranks either is the rank's own tensor, and nothing is taken.
#pragma once

#include "examples/decoder/model/activations.hpp"

namespace decoder {

// The rows of all tensor ranks, [tokens, width], from this rank's rows of the residual stream.
class all_rows {
 public:
  all_rows(const pass& now, const velo::tensor_view& own) : view_(own) {
    const tensor_parallel& tensor = now.parallel.tensor;
    if (!tensor.cuts_rows()) return;
    view_ = whole(now, own, memory_);
    tensor.gather(now.stream, own, view_);
  }
  const velo::tensor_view& view() const { return view_; }

  // A buffer of the size of all rows.
  static velo::tensor_view whole(const pass& now, const velo::tensor_view& own, buffer& memory) {
    const velo_dtype type = own.type();
    memory =
        now.memory.take(now.room.tokens() * own.size(1) * (type.bits / 8), VELO_PURPOSE_WORKSPACE);
    return {memory.data(), type, {now.batch.tokens(), own.size(1)}};
  }

 private:
  buffer memory_;
  velo::tensor_view view_;
};

// A product of all rows, [tokens, width], of which each tensor rank computes a part: `finish`
// writes this rank's rows of the sum to the residual stream.
class summed_rows {
 public:
  summed_rows(const pass& now, const velo::tensor_view& own) : now_(now), own_(own), view_(own) {
    if (now.parallel.tensor.cuts_rows()) view_ = all_rows::whole(now, own, memory_);
  }
  const velo::tensor_view& view() const { return view_; }
  void finish() const {
    if (!now_.parallel.tensor.is_alone()) now_.parallel.tensor.sum(now_.stream, view_, own_);
  }

 private:
  const pass& now_;
  const velo::tensor_view own_;
  buffer memory_;
  velo::tensor_view view_;
};

}  // namespace decoder
