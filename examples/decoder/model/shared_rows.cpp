// The products of matrices that tensor ranks share, each with the collective beside it.
//
// A matrix that is cut one way: column_parallel_linear and row_parallel_linear. One that is cut
// both ways: all_gather_matmul_reduce_scatter, with its groups exchanged on the way back, where the
// rows x that the matrix's gradient needs are gathered beside the sum of dx. A rank alone: a
// product between the classes of shared_rows.hpp, which do nothing where nothing is cut.
#include "examples/decoder/model/shared_rows.hpp"

namespace decoder {
namespace {

// Rows of the stream are gathered, and the products are summed between two matrices; or back.
linear::crossed_groups from_stream(const pass& now) {
  const model_parallel& all = now.parallel;
  return {all.tensor.group(), all.hidden.group(), all.tensor.row_counts(now.batch.all_tokens()),
          all.hidden.row_counts(now.along_y(), now.batch.sequences)};
}
linear::crossed_groups to_stream(const pass& now) {
  const linear::crossed_groups back = from_stream(now);
  return {back.sum, back.gather, back.sum_rows, back.gather_rows};
}

// The rows of all ranks that a product gathers, or that are gathered beside its sum, if a weight's
// gradient needs them: its own where one rank alone has them.
class gathered_rows {
 public:
  gathered_rows(const pass& now, const velo::tensor_view& own, bool gathers, bool wanted)
      : view_(own), receives_(gathers && wanted) {
    if (receives_) view_ = room_for_all(now, own, memory_);
  }
  const velo::tensor_view& view() const { return view_; }
  const velo::tensor_view* result() const { return receives_ ? &view_ : nullptr; }

 private:
  buffer memory_;
  velo::tensor_view view_;
  bool receives_;
};

void free_spent(buffer* spent) {
  if (spent != nullptr) *spent = {};
}

}  // namespace

void project(const pass& now, const linear& matrix, const velo::tensor_view& x,
             const velo::tensor_view& y) {
  if (is_cut_one_way(now) && now.parallel.tensor.cuts_rows())
    return matrix.forward_cut_outputs(now.stream, now.parallel.tensor, x, y);
  if (is_cut_both_ways(now)) return matrix.forward_cut_both(now.stream, from_stream(now), x, y);
  const all_rows all(now, x);
  const summed_between products(now, y);
  matrix.forward(now.stream, all.view(), products.view());
  products.finish();
}

void return_to_stream(const pass& now, const linear& matrix, const velo::tensor_view& x,
                      const velo::tensor_view& y) {
  if (is_cut_one_way(now)) return matrix.forward_cut_inputs(now.stream, now.parallel.tensor, x, y);
  if (is_cut_both_ways(now)) return matrix.forward_cut_both(now.stream, to_stream(now), x, y);
  const all_between all(now, x);
  const summed_rows products(now, y);
  matrix.forward(now.stream, all.view(), products.view());
  products.finish();
}

void project_backward(const pass& now, const linear& matrix, const linear_rows& of, bool deferred,
                      buffer* spent) {
  if (is_cut_one_way(now)) {
    matrix.backward_cut_outputs(now.stream, now.parallel.tensor,
                                {deferred ? nullptr : &of.x, of.dy, &of.dx});
    if (!deferred) free_spent(spent);
    return;
  }
  if (is_cut_both_ways(now)) {
    const gathered_rows dy(now, of.dy, true, !deferred),
        x(now, of.x, !now.parallel.tensor.is_alone(), !deferred);
    matrix.input_gradient_cut_both(now.stream, to_stream(now),
                                   {of.x, of.dy, of.dx, dy.result(), x.result()});
    if (deferred) return;
    matrix.weight_gradient(now.stream, x.view(), dy.view());
    return free_spent(spent);
  }
  const all_between dy(now, of.dy);
  if (!deferred) {
    matrix.weight_gradient(now.stream, all_rows(now, of.x).view(), dy.view());
    free_spent(spent);
  }
  const summed_rows products(now, of.dx);
  matrix.input_gradient(now.stream, dy.view(), products.view());
  products.finish();
}

buffer return_backward(const pass& now, const linear& matrix, const velo::tensor_view& x,
                       const velo::tensor_view& dy, bool deferred, buffer* spent) {
  const auto make_dx = [&] {
    return now.memory.take(now.room.tokens() * x.size(1) * (x.type().bits / 8),
                           VELO_PURPOSE_WORKSPACE);
  };
  const auto view = [&](const buffer& dx) {
    return velo::tensor_view(dx.data(), x.type(), {now.batch.tokens(), x.size(1)});
  };
  if (is_cut_one_way(now)) {
    buffer dx = make_dx();
    const velo::tensor_view to = view(dx);
    matrix.backward_cut_inputs(now.stream, now.parallel.tensor, {deferred ? nullptr : &x, dy, &to});
    if (!deferred) free_spent(spent);
    return dx;
  }
  if (is_cut_both_ways(now)) {
    buffer dx = make_dx();
    const velo::tensor_view to = view(dx);
    const gathered_rows all_dy(now, dy, !now.parallel.tensor.is_alone(), !deferred),
        all_x(now, x, true, !deferred);
    matrix.input_gradient_cut_both(now.stream, from_stream(now),
                                   {x, dy, to, all_dy.result(), all_x.result()});
    if (deferred) return dx;
    matrix.weight_gradient(now.stream, all_x.view(), all_dy.view());
    free_spent(spent);
    return dx;
  }
  const all_rows all(now, dy);
  if (!deferred) {
    matrix.weight_gradient(now.stream, all_between(now, x).view(), all.view());
    free_spent(spent);
  }
  buffer dx = make_dx();
  const summed_between products(now, view(dx));
  matrix.input_gradient(now.stream, all.view(), products.view());
  products.finish();
  return dx;
}

void project_weight_gradient(const pass& now, const linear& matrix, const velo::tensor_view& x,
                             const velo::tensor_view& dy) {
  if (is_cut_one_way(now))
    return matrix.backward_cut_outputs(now.stream, now.parallel.tensor, {&x, dy, nullptr});
  matrix.weight_gradient(now.stream, all_rows(now, x).view(), all_between(now, dy).view());
}

void return_weight_gradient(const pass& now, const linear& matrix, const velo::tensor_view& x,
                            const velo::tensor_view& dy) {
  if (is_cut_one_way(now))
    return matrix.backward_cut_inputs(now.stream, now.parallel.tensor, {&x, dy, nullptr});
  matrix.weight_gradient(now.stream, all_between(now, x).view(), all_rows(now, dy).view());
}

}  // namespace decoder
