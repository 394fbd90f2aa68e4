// The packed copies and the three grouped products of the experts' matrices.
#include "examples/decoder/model/experts/grouped_linear.hpp"

namespace decoder {
namespace {

velo::pack make_pack(const velo::context& context, const velo::tensor_view& weight,
                     bool transpose) {
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.dtype = weight.type();
  desc.transpose = transpose;
  desc.count = weight.size(0);
  desc.k = weight.size(transpose ? 2 : 1);
  desc.n = weight.size(transpose ? 1 : 2);
  return velo::pack::create(context, desc);
}

velo::grouped_matmul_args by_rows(const velo::tensor_view& counts) {
  return velo::grouped_matmul_args().group_list_tensor(counts).group_list_kind(
      velo::group_list_kind::counts);
}

}  // namespace

grouped_linear::grouped_linear(const velo::context& context, const weights& from,
                               std::int64_t offset, size of, bool training)
    : weight_(from.weight(offset, {of.experts, of.out, of.in})),
      forward_(make_pack(context, weight_, true)) {
  if (!training) return;
  gradient_ = from.gradient(offset, {of.experts, of.out, of.in});
  backward_ = make_pack(context, weight_, false);
}

void grouped_linear::refresh(const velo::stream_ref& stream) {
  forward_.update(stream, weight_);
  if (backward_) backward_.update(stream, weight_);
}

void grouped_linear::forward(const velo::stream_ref& stream, const velo::tensor_view& counts,
                             const velo::tensor_view& x, const velo::tensor_view& y) const {
  velo::grouped_matmul(stream, by_rows(counts).x(x).packed(forward_).y(y));
}

void grouped_linear::input_gradient(const velo::stream_ref& stream, const velo::tensor_view& counts,
                                    const velo::tensor_view& dy,
                                    const velo::tensor_view& dx) const {
  velo::grouped_matmul(stream, by_rows(counts).x(dy).packed(backward_).y(dx));
}

// dW = dy^T x of each expert's rows.
void grouped_linear::weight_gradient(const velo::stream_ref& stream,
                                     const velo::tensor_view& counts, const velo::tensor_view& x,
                                     const velo::tensor_view& dy) const {
  if (gradient_.type().bits == 32) {
    velo::grouped_matmul_add_fp32(stream, velo::grouped_matmul_add_fp32_args()
                                              .x(dy)
                                              .dy(x)
                                              .grad(gradient_)
                                              .group_list_tensor(counts)
                                              .group_list_kind(velo::group_list_kind::counts));
    return;
  }
  velo::grouped_matmul(stream, by_rows(counts)
                                   .group_type(velo::group_type::depth)
                                   .x(dy)
                                   .transpose_x(true)
                                   .weight(x)
                                   .y(gradient_)
                                   .accumulate(true));
}

}  // namespace decoder
