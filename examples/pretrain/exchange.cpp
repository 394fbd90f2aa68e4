// Slices in the order of the layout.
#include "exchange.hpp"

namespace pretrain {
namespace {

std::vector<std::int64_t> slices_of(const weight_layout& all) {
  std::vector<std::int64_t> begins = {0};
  for (const layer_layout& layer : all.layers) begins.push_back(layer.qkv);
  if (all.head != all.embedding) begins.push_back(all.head);
  begins.push_back(all.decayed);
  begins.push_back(all.total);
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) counts.push_back(begins[i + 1] - begins[i]);
  return counts;
}

velo::buckets make_buckets(const member& rank, const velo::tensor_view& gradients,
                           const std::vector<std::int64_t>& counts, bool sharded) {
  velo_buckets_desc desc = VELO_BUCKETS_DESC_INIT;
  desc.mode = sharded ? VELO_BUCKETS_REDUCE_SCATTER : VELO_BUCKETS_ALL_REDUCE;
  return velo::buckets::create(rank.link(), rank.group(), gradients, counts.data(),
                               static_cast<std::int64_t>(counts.size()), desc);
}

}  // namespace

exchange::exchange(const member& rank, const weight_layout& layout,
                   const velo::tensor_view& gradients, bool sharded)
    : stream_(rank.stream()),
      tied_(layout.head == layout.embedding),
      counts_(slices_of(layout)),
      buckets_(make_buckets(rank, gradients, counts_, sharded)) {
  for (std::int64_t i = 0; i < buckets_.info().buckets; ++i) {
    const velo_bucket one = buckets_.bucket(i);
    if (one.own_count > 0) own_.push_back({one.own_offset, one.own_count});
  }
}

void exchange::head_ready() const {
  if (!tied_) buckets_.ready(stream_, static_cast<std::int64_t>(counts_.size()) - 2);
}
void exchange::layer_ready(std::size_t layer) const {
  buckets_.ready(stream_, static_cast<std::int64_t>(layer) + 1);
}
void exchange::finish() const {
  buckets_.finish(stream_);
}

void exchange::gather(const velo::tensor_view& weights) const {
  buckets_.gather(stream_, weights);
}
void exchange::wait(std::size_t slice) const {
  buckets_.wait(stream_, static_cast<std::int64_t>(slice));
}
void exchange::await_embedding() const {
  wait(0);
}
void exchange::await_layer(std::size_t layer) const {
  wait(layer + 1);
}
void exchange::await_head() const {
  wait(tied_ ? 0 : counts_.size() - 2);
}
void exchange::await_norms() const {
  wait(counts_.size() - 1);
}

}  // namespace pretrain
