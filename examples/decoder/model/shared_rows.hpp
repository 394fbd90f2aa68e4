// Rows that tensor ranks share during a product. all_rows and summed_rows gather from, and scatter
// to, the residual stream, whose rows are cut along x. all_between and summed_between do the same
// between two matrices, where rows are cut along y (hidden_parallel.hpp).
//
// Where rows are not cut, both are the rank's own tensor, and no memory is taken. Cost: a gather or
// a sum over the tensor ranks, and a workspace of all rows.
//
// The products of the model's matrices (shared_rows.cpp) are one operator with such a collective
// wherever velo has one; elsewhere these classes stand around a product of the rank alone. Both
// ways give the same bits.
#pragma once

#include "examples/decoder/model/activations.hpp"
#include "examples/decoder/model/linear.hpp"

namespace decoder {

// Whether matrices are cut between ranks, and one way alone.
inline bool is_cut_one_way(const pass& now) {
  return now.parallel.hidden.is_alone() && !now.parallel.tensor.is_alone();
}
inline bool is_cut_both_ways(const pass& now) {
  return !now.parallel.hidden.is_alone();
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

// ---- products ----
//
// The first matrix of a branch, or the head, leads from the residual stream to the rows between two
// matrices; the second one leads back. x, dx: rows of this rank before a matrix; y, dy: after it.

void project(const pass& now, const linear& matrix, const velo::tensor_view& x,
             const velo::tensor_view& y);
void return_to_stream(const pass& now, const linear& matrix, const velo::tensor_view& x,
                      const velo::tensor_view& y);

// The gradients of `project`: dx, and unless `deferred` the matrix's. `spent` is the buffer of x,
// freed after its last use, or nullptr.
struct linear_rows {
  const velo::tensor_view x, dy, dx;
};
void project_backward(const pass& now, const linear& matrix, const linear_rows& of, bool deferred,
                      buffer* spent);
// The gradients of `return_to_stream`, in the same way; returns dx, [tokens, width of x].
buffer return_backward(const pass& now, const linear& matrix, const velo::tensor_view& x,
                       const velo::tensor_view& dy, bool deferred, buffer* spent);

// The matrix's gradient alone.
void project_weight_gradient(const pass& now, const linear& matrix, const velo::tensor_view& x,
                             const velo::tensor_view& dy);
void return_weight_gradient(const pass& now, const linear& matrix, const velo::tensor_view& x,
                            const velo::tensor_view& dy);

}  // namespace decoder
