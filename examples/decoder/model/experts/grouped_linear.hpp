// A matrix of each expert of a rank as one operator: rows lie by expert, and each is multiplied by
// its expert's matrix. Otherwise as linear.hpp.
//
// The matrices are stored [experts, out, in]; `counts` has the rows of each expert, some of which
// may have none.
#pragma once

#include <velo/velo.hpp>

#include "examples/decoder/weights/weights.hpp"

namespace decoder {

class grouped_linear {
 public:
  struct size {
    std::int64_t experts, out, in;
  };
  // The matrices at `offset` of the layout. Without `training` only the forward pack is made.
  grouped_linear(const velo::context& context, const weights& from, std::int64_t offset, size of,
                 bool training);

  void refresh(const velo::stream_ref& stream);

  void forward(const velo::stream_ref& stream, const velo::tensor_view& counts,
               const velo::tensor_view& x, const velo::tensor_view& y) const;
  void input_gradient(const velo::stream_ref& stream, const velo::tensor_view& counts,
                      const velo::tensor_view& dy, const velo::tensor_view& dx) const;
  // Adds to the matrices' gradients.
  void weight_gradient(const velo::stream_ref& stream, const velo::tensor_view& counts,
                       const velo::tensor_view& x, const velo::tensor_view& dy) const;

 private:
  velo::tensor_view weight_, gradient_;
  velo::pack forward_, backward_;
};

}  // namespace decoder
