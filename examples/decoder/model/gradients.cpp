// Two operators, and the way to a bf16 gradient.
#include "examples/decoder/model/gradients.hpp"

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
    velo::vocab_parallel_embedding_backward_args call;
    call.group(tensor.group()).indices(ids).dy(dy).dweight(gradient).rows(rows);
    call.accumulate(accumulate).vocab_begin(vocab_begin).vocab_size(vocab);
    const velo_ints parts = tensor.row_counts(now.batch.all_tokens());
    if (tensor.cuts_rows()) call.sequence_parallel(true).token_rows(parts);
    velo::vocab_parallel_embedding_backward(now.stream, call);
  });
}

}  // namespace decoder
