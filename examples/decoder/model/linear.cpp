// The packed copies and the three products of a matrix.
#include "examples/decoder/model/linear.hpp"

namespace decoder {
namespace {

velo::pack make_pack(const velo::context& context, const velo::tensor_view& weight,
                     bool transpose) {
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.dtype = weight.type();
  desc.transpose = transpose;
  desc.k = weight.size(transpose ? 1 : 0);
  desc.n = weight.size(transpose ? 0 : 1);
  return velo::pack::create(context, desc);
}

// The ranks of an operator, and how they share so many rows.
class shared_call {
 public:
  shared_call(const tensor_parallel& ranks, std::int64_t rows)
      : ranks_(ranks), rows_(ranks.cuts_rows() ? ranks.row_counts(rows) : velo_ints{}) {}

  template <class Arguments>
  Arguments fill(Arguments with) const {
    with.group(ranks_.group()).sequence_parallel(ranks_.cuts_rows());
    if (ranks_.cuts_rows()) with.rows(rows_);
    return with;
  }

 private:
  const tensor_parallel& ranks_;
  const velo_ints rows_;
};

velo::all_gather_matmul_reduce_scatter_args crossed(const linear::crossed_groups& over) {
  return velo::all_gather_matmul_reduce_scatter_args()
      .gather_group(over.gather)
      .scatter_group(over.sum)
      .gather_rows(over.gather_rows)
      .scatter_rows(over.sum_rows);
}

}  // namespace

linear::linear(const velo::context& context, const weights& from, std::int64_t offset,
               std::int64_t out, std::int64_t in, bool training)
    : weight_(from.weight(offset, {out, in})), forward_(make_pack(context, weight_, true)) {
  if (!training) return;
  gradient_ = from.gradient(offset, {out, in});
  backward_ = make_pack(context, weight_, false);
}

void linear::refresh(const velo::stream_ref& stream) {
  forward_.update(stream, weight_);
  if (backward_) backward_.update(stream, weight_);
}

void linear::forward(const velo::stream_ref& stream, const velo::tensor_view& x,
                     const velo::tensor_view& y) const {
  velo::matmul(stream, velo::matmul_args().a(x).packed(forward_).c(y));
}

void linear::input_gradient(const velo::stream_ref& stream, const velo::tensor_view& dy,
                            const velo::tensor_view& dx) const {
  velo::matmul(stream, velo::matmul_args().a(dy).packed(backward_).c(dx));
}

void linear::add_input_gradient(const velo::stream_ref& stream, const velo::tensor_view& dy,
                                const velo::tensor_view& dx) const {
  velo::matmul(stream, velo::matmul_args().a(dy).packed(backward_).c(dx).accumulate(true));
}

void linear::weight_gradient(const velo::stream_ref& stream, const velo::tensor_view& x,
                             const velo::tensor_view& dy) const {
  if (gradient_.type().bits == 32) {
    velo::matmul_add_fp32(
        stream, velo::matmul_add_fp32_args().total_input(x).grad_output(dy).grad(gradient_));
  } else {
    velo::matmul(stream,
                 velo::matmul_args().a(dy).transpose_a(true).b(x).c(gradient_).accumulate(true));
  }
}

void linear::forward_cut_outputs(const velo::stream_ref& stream, const tensor_parallel& ranks,
                                 const velo::tensor_view& x, const velo::tensor_view& y) const {
  const shared_call call(ranks, y.size(0));
  velo::column_parallel_linear(
      stream,
      call.fill(velo::column_parallel_linear_args().x(x).weight(weight_).packed(forward_).y(y)));
}

void linear::forward_cut_inputs(const velo::stream_ref& stream, const tensor_parallel& ranks,
                                const velo::tensor_view& x, const velo::tensor_view& y) const {
  const shared_call call(ranks, x.size(0));
  velo::row_parallel_linear(
      stream,
      call.fill(velo::row_parallel_linear_args().x(x).weight(weight_).packed(forward_).y(y)));
}

template <class Arguments>
Arguments linear::with_results(Arguments arguments, const gradient_rows& of) const {
  if (of.dx != nullptr) arguments.dx(*of.dx);
  if (of.x != nullptr) arguments.x(*of.x).dweight(gradient_).accumulate(true);
  return arguments;
}

void linear::backward_cut_outputs(const velo::stream_ref& stream, const tensor_parallel& ranks,
                                  const gradient_rows& of) const {
  const shared_call call(ranks, of.dy.size(0));
  auto arguments = call.fill(
      velo::column_parallel_linear_backward_args().dy(of.dy).weight(weight_).packed(backward_));
  velo::column_parallel_linear_backward(stream, with_results(arguments, of));
}

void linear::backward_cut_inputs(const velo::stream_ref& stream, const tensor_parallel& ranks,
                                 const gradient_rows& of) const {
  const velo::tensor_view& with_all_rows = of.x != nullptr ? *of.x : *of.dx;
  const shared_call call(ranks, with_all_rows.size(0));
  auto arguments = call.fill(
      velo::row_parallel_linear_backward_args().dy(of.dy).weight(weight_).packed(backward_));
  velo::row_parallel_linear_backward(stream, with_results(arguments, of));
}

void linear::forward_cut_both(const velo::stream_ref& stream, const crossed_groups& over,
                              const velo::tensor_view& x, const velo::tensor_view& y) const {
  velo::all_gather_matmul_reduce_scatter(
      stream, crossed(over).x(x).weight(weight_).transpose_weight(true).packed(forward_).y(y));
}

void linear::input_gradient_cut_both(const velo::stream_ref& stream, const crossed_groups& over,
                                     const crossed_rows& of) const {
  auto arguments = crossed(over).x(of.dy).weight(weight_).packed(backward_).y(of.dx);
  if (of.all_dy != nullptr) arguments.gathered(*of.all_dy);
  if (of.all_x != nullptr) arguments.beside(of.x).beside_gathered(*of.all_x);
  velo::all_gather_matmul_reduce_scatter(stream, arguments);
}

}  // namespace decoder
