// Rows that tensor ranks share during a product. all_rows and summed_rows gather from, and scatter
// to, the residual stream, whose rows are cut along x. all_between and summed_between do the same
// between two matrices, where rows are cut along y (hidden_parallel.hpp).
//
// Where rows are not cut, both are the rank's own tensor, and no memory is taken. Cost: a gather or
// a sum over the tensor ranks, and a workspace of all rows.
#pragma once

#include "examples/decoder/model/activations.hpp"

namespace decoder {

// Whether the operators of `linear` for shared matrices serve: those of matrices that are cut one
// way. Otherwise the classes below stand around a product of the rank alone.
inline bool is_cut_one_way(const pass& now) {
  return now.parallel.hidden.is_alone() && !now.parallel.tensor.is_alone();
}

// A tensor in `memory` for the rows of all tensor ranks, [all tokens, width], of which `own` has
// this rank's.
inline velo::tensor_view room_for_all(const pass& now, const velo::tensor_view& own,
                                      buffer& memory) {
  const velo_dtype type = own.type();
  memory = now.memory.take(now.room.all_tokens() * own.size(1) * (type.bits / 8),
                           VELO_PURPOSE_WORKSPACE);
  return {memory.data(), type, {now.batch.all_tokens(), own.size(1)}};
}

// The rows of all tensor ranks, [all tokens, width], from this rank's rows of the residual stream.
class all_rows {
 public:
  all_rows(const pass& now, const velo::tensor_view& own) : view_(own) {
    const tensor_parallel& tensor = now.parallel.tensor;
    if (!tensor.cuts_rows()) return;
    view_ = room_for_all(now, own, memory_);
    tensor.gather(now.stream, own, view_);
  }
  const velo::tensor_view& view() const { return view_; }

 private:
  buffer memory_;
  velo::tensor_view view_;
};

// A product of all rows, [all tokens, width], of which each tensor rank computes a part: `finish`
// writes this rank's rows of the sum to the residual stream.
class summed_rows {
 public:
  summed_rows(const pass& now, const velo::tensor_view& own) : now_(now), own_(own), view_(own) {
    if (now.parallel.tensor.cuts_rows()) view_ = room_for_all(now, own, memory_);
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

// The rows of all tensor ranks, [all tokens, width], from this rank's between two matrices.
class all_between {
 public:
  all_between(const pass& now, const velo::tensor_view& own) : view_(own) {
    const hidden_parallel& hidden = now.parallel.hidden;
    if (hidden.is_alone()) return;
    view_ = room_for_all(now, own, memory_);
    hidden.gather(now.stream, own, now.along_y(), now.batch.sequences, view_);
  }
  const velo::tensor_view& view() const { return view_; }

 private:
  buffer memory_;
  velo::tensor_view view_;
};

// A product of all rows, [all tokens, width], of which each rank along y computes a part: `finish`
// writes this rank's rows of the sum between two matrices.
class summed_between {
 public:
  summed_between(const pass& now, const velo::tensor_view& own) : now_(now), own_(own), view_(own) {
    if (!now.parallel.hidden.is_alone()) view_ = room_for_all(now, own, memory_);
  }
  const velo::tensor_view& view() const { return view_; }
  void finish() const {
    const hidden_parallel& hidden = now_.parallel.hidden;
    if (hidden.is_alone()) return;
    hidden.sum(now_.stream, view_, now_.along_y(), now_.batch.sequences, own_);
  }

 private:
  const pass& now_;
  const velo::tensor_view own_;
  buffer memory_;
  velo::tensor_view view_;
};

}  // namespace decoder
