// Sums over tensor ranks and stages come before averages over copies.
#include "examples/decoder/optimizer/finished_gradients.hpp"

namespace decoder {

void finish_gradients(const velo::stream_ref& stream, const model_parallel& parallel,
                      const weights& all, const data_parallel* shared) {
  parallel.tensor.sum_gradients(stream, all.norm_gradients());
  parallel.tensor.sum_parts(stream, all.router_gradients());
  if (parallel.tied_ends != nullptr) {
    const velo::tensor_view x = all.embedding_gradient();
    parallel.tied_ends->all_reduce(stream, x, x);
  }
  if (shared != nullptr) shared->finish();
}

std::vector<range> counted_ranges(const weights& all, const data_parallel* shared) {
  return all.counted(shared != nullptr ? shared->own() : all.own());
}

}  // namespace decoder
