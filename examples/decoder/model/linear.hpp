// A matrix of the model as an operator: y = x W^T, with both of its gradients.
//
// W is stored [out, in], as in Hugging Face's files. The products read packed copies, one for each
// direction; `refresh` packs anew once an optimizer step, and every product of the step uses the
// packs.
#pragma once

#include <velo/velo.hpp>

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

 private:
  velo::tensor_view weight_, gradient_;
  velo::pack forward_, backward_;
};

}  // namespace decoder
