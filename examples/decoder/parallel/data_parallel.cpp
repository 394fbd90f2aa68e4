// Slices of the weights in the order of the layout, as the parts of velo::buckets.
#include "examples/decoder/parallel/data_parallel.hpp"

namespace decoder {
namespace {

velo::buckets make_buckets(const member& rank, const velo::tensor_view& gradients,
                           const std::vector<std::int64_t>& counts, bool sharded) {
  velo_buckets_desc desc = VELO_BUCKETS_DESC_INIT;
  desc.mode = sharded ? VELO_BUCKETS_REDUCE_SCATTER : VELO_BUCKETS_ALL_REDUCE;
  return velo::buckets::create(rank.data_parallel_stream(), rank.data_parallel_group(), gradients,
                               counts.data(), static_cast<std::int64_t>(counts.size()), desc);
}

}  // namespace

data_parallel::slices::slices(const weight_layout& all) : layers(all.layers.size(), none) {
  std::vector<std::int64_t> begins;
  const auto add = [&](std::int64_t begin) {
    if (begin < 0) return none;
    begins.push_back(begin);
    return static_cast<std::int64_t>(begins.size()) - 1;
  };
  norms = add(all.decayed > 0 ? 0 : none);
  embedding = add(all.embedding);
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i] = add(all.layers[i].qkv);
  const bool tied = all.head == all.embedding && all.head >= 0;
  head = tied ? embedding : add(all.head);
  begins.push_back(all.total);
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) counts.push_back(begins[i + 1] - begins[i]);
}

data_parallel::data_parallel(const member& rank, const weight_layout& layout,
                             const velo::tensor_view& gradients, bool sharded)
    : stream_(rank.stream()),
      slices_(layout),
      buckets_(make_buckets(rank, gradients, slices_.counts, sharded)) {
  for (std::int64_t i = 0; i < buckets_.info().buckets; ++i) {
    const velo_bucket one = buckets_.bucket(i);
    if (one.own_count > 0) own_.push_back({one.own_offset, one.own_count});
  }
}

void data_parallel::head_ready() const {
  if (slices_.head != slices_.embedding) buckets_.ready(stream_, slices_.head);
}
void data_parallel::layer_ready(std::size_t layer) const {
  buckets_.ready(stream_, slices_.layers[layer]);
}
void data_parallel::finish() const {
  buckets_.finish(stream_);
}

void data_parallel::gather(const velo::tensor_view& weights) const {
  buckets_.gather(stream_, weights);
}
void data_parallel::await_embedding() const {
  buckets_.wait(stream_, slices_.embedding);
}
void data_parallel::await_layer(std::size_t layer) const {
  buckets_.wait(stream_, slices_.layers[layer]);
}
void data_parallel::await_head() const {
  buckets_.wait(stream_, slices_.head);
}
void data_parallel::await_norms() const {
  if (slices_.norms != slices::none) buckets_.wait(stream_, slices_.norms);
}

}  // namespace decoder
