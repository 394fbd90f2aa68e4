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

}  // namespace decoder
