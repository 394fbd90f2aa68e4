// A matrix of the model as an operator: y = x W^T, with both of its gradients.
//
// W is stored [out, in], as in Hugging Face's files. The products read packed copies, one for each
// direction; `refresh` packs anew once an optimizer step, and every product of the step uses the
// packs.
//
// Tensor ranks that share a matrix have a part of its outputs or of its inputs each. There the
// product and the collective beside it are one operator, which overlaps them: x of all ranks is
// gathered, or the products are summed, and back the other way round. `own` rows are the part that
// a rank has of the residual stream; without sequence parallelism it has all of them.
#pragma once

#include <velo/velo.hpp>

#include "examples/decoder/parallel/model_parallel.hpp"
#include "examples/decoder/weights/weights.hpp"

namespace decoder {

class linear {
 public:
  // The matrix at `offset` of the layout. Without `training` only the forward pack is made.
  linear(const velo::context& context, const weights& from, std::int64_t offset, std::int64_t out,
         std::int64_t in, bool training);

  void refresh(const velo::stream_ref& stream);

  void forward(const velo::stream_ref& stream, const velo::tensor_view& x,
               const velo::tensor_view& y) const;
  void input_gradient(const velo::stream_ref& stream, const velo::tensor_view& dy,
                      const velo::tensor_view& dx) const;  // dx = dy W
  void weight_gradient(const velo::stream_ref& stream, const velo::tensor_view& x,
                       const velo::tensor_view& dy) const;  // dW += dy^T x

  // Of a part of the outputs. y: all rows.
  void forward_of_own(const velo::stream_ref& stream, const tensor_parallel& ranks,
                      const velo::tensor_view& x, const velo::tensor_view& y) const;
  // Of a part of the inputs. x: all rows.
  void forward_to_own(const velo::stream_ref& stream, const tensor_parallel& ranks,
                      const velo::tensor_view& x, const velo::tensor_view& y) const;
  // The gradients of both, the matrix's too where x is given.
  void backward_of_own(const velo::stream_ref& stream, const tensor_parallel& ranks,
                       const velo::tensor_view* x, const velo::tensor_view& dy,
                       const velo::tensor_view& dx) const;
  void backward_to_own(const velo::stream_ref& stream, const tensor_parallel& ranks,
                       const velo::tensor_view* x, const velo::tensor_view& dy,
                       const velo::tensor_view& dx) const;

 private:
  velo::tensor_view weight_, gradient_;
  velo::pack forward_, backward_;
};

}  // namespace decoder
