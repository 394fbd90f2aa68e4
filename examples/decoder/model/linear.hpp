// A matrix of the model as an operator: y = x W^T, with both of its gradients.
//
// W is stored [out, in], as in Hugging Face's files. The products read packed copies, one for each
// direction; `refresh` packs anew once an optimizer step, and every product of the step uses the
// packs.
//
// Tensor ranks that share a matrix have a part of its outputs, of its inputs, or of both. There the
// product and the collective beside it are one operator, which overlaps them: rows of all ranks are
// gathered before the product, or the products are summed after it. The gradients take the way
// back. `own` rows are those that a rank has of the residual stream; without sequence parallelism
// it has all of them.
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
  void add_input_gradient(const velo::stream_ref& stream, const velo::tensor_view& dy,
                          const velo::tensor_view& dx) const;  // dx += dy W
  void weight_gradient(const velo::stream_ref& stream, const velo::tensor_view& x,
                       const velo::tensor_view& dy) const;  // dW += dy^T x

  // A matrix of which each rank has a part of the outputs. x, dx: own rows; y, dy: all rows.
  void forward_cut_outputs(const velo::stream_ref& stream, const tensor_parallel& ranks,
                           const velo::tensor_view& x, const velo::tensor_view& y) const;
  // One of which each rank has a part of the inputs. x, dx: all rows; y, dy: own rows.
  void forward_cut_inputs(const velo::stream_ref& stream, const tensor_parallel& ranks,
                          const velo::tensor_view& x, const velo::tensor_view& y) const;
  // Their gradients, the matrix's where x is given, and the input's where dx is.
  struct gradient_rows {
    const velo::tensor_view *x, &dy, *dx;
  };
  void backward_cut_outputs(const velo::stream_ref& stream, const tensor_parallel& ranks,
                            const gradient_rows& of) const;
  void backward_cut_inputs(const velo::stream_ref& stream, const tensor_parallel& ranks,
                           const gradient_rows& of) const;

  // One that is cut both ways: rows are gathered over a group, and the products are summed over
  // another. A group of one rank may be nullptr.
  struct crossed_groups {
    velo_group gather, sum;
    velo_ints gather_rows, sum_rows;  // of each rank
  };
  // x: rows of this rank, of those gathered; y: rows of this rank, of the sum.
  void forward_cut_both(const velo::stream_ref& stream, const crossed_groups& over,
                        const velo::tensor_view& x, const velo::tensor_view& y) const;
  // dy: rows of this rank, of those gathered; dx and x: rows of this rank, of the sum. For the
  // matrix's gradient `all_dy` receives the gathered rows, and `all_x`, beside the sum, the rows x
  // of all ranks that share it; either may be nullptr.
  struct crossed_rows {
    const velo::tensor_view &x, &dy, &dx;
    const velo::tensor_view *all_dy, *all_x;
  };
  void input_gradient_cut_both(const velo::stream_ref& stream, const crossed_groups& over,
                               const crossed_rows& of) const;

 private:
  // Adds the gradients that are wanted to the arguments of an operator.
  template <class Arguments>
  Arguments with_results(Arguments arguments, const gradient_rows& of) const;

  velo::tensor_view weight_, gradient_;
  velo::pack forward_, backward_;
};

}  // namespace decoder
