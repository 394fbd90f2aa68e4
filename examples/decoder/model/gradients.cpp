// Two operators, and the way to a bf16 gradient.
#include "examples/decoder/model/gradients.hpp"

#include <optional>

#include "examples/decoder/model/shared_rows.hpp"

namespace decoder {
namespace {

// call(gradient, accumulate): the operator's call with these arguments.
template <class Call>
void add_gradient(const pass& now, const velo::tensor_view& gradient, Call&& call) {
  if (gradient.type().bits == 32) return call(gradient, true);
  const buffer workspace = now.memory.take(gradient.numel() * 4, VELO_PURPOSE_WORKSPACE);
  if (now.memory.is_dry_run()) return;  // which has no rows, so nothing to add
  const velo::tensor_view exact(workspace.floats(), {gradient.get()->shape, gradient.rank()});
  call(exact, false);
  velo::accumulate(now.stream, velo::accumulate_args().x(exact).y(gradient));
}

}  // namespace

void norm_backward(const pass& now, const velo::tensor_view& x, const velo::tensor_view& gain,
                   const buffer& rstd, const velo::tensor_view& through,
                   const velo::tensor_view& gain_gradient) {
  const velo::tensor_view scales(rstd.floats(), {now.rows(), 1});
  add_gradient(now, gain_gradient, [&](const velo::tensor_view& dgamma, bool accumulate) {
    now.parallel.hidden.norm_backward(now.stream, {x, gain, scales}, through, dgamma, accumulate);
  });
}

void embedding_backward(const pass& now, const velo::tensor_view& ids, const velo::tensor_view& dy,
                        const velo::tensor_view& table_gradient, std::int64_t vocab_begin,
                        std::int64_t vocab) {
  const tensor_parallel& tensor = now.parallel.tensor;
  const std::int64_t rows = table_gradient.size(0);
  add_gradient(now, table_gradient, [&](const velo::tensor_view& gradient, bool accumulate) {
    if (tensor.is_alone()) {
      velo::embedding_backward(
          now.stream,
          velo::embedding_backward_args().ids(ids).dy(dy).dtable(gradient).rows(rows).accumulate(
              accumulate));
      return;
    }
    const bool cut = tensor.cuts_rows() && tensor.divides(now.batch.all_tokens());
    std::optional<all_rows> all;  // where the operator has no even parts
    if (!cut) all.emplace(now, dy);
    velo::vocab_parallel_embedding_backward(now.stream,
                                            velo::vocab_parallel_embedding_backward_args()
                                                .group(tensor.group())
                                                .indices(ids)
                                                .dy(cut ? dy : all->view())
                                                .dweight(gradient)
                                                .rows(rows)
                                                .accumulate(accumulate)
                                                .vocab_begin(vocab_begin)
                                                .vocab_size(vocab)
                                                .sequence_parallel(cut));
  });
}

}  // namespace decoder
