// Slices of the weights in the order of the layout, as the parts of velo::buckets.
#include "examples/decoder/parallel/data_parallel.hpp"

#include <utility>

namespace decoder {
namespace {

// The elements [begin, begin + count) of a row.
using view_of = velo::tensor_view (weights::*)(std::int64_t begin, velo::sizes count) const;

velo::tensor_view dense(const weights& all, view_of view) {
  return (all.*view)(0, {all.layout().experts});
}
velo::tensor_view experts(const weights& all, view_of view) {
  const weight_layout& layout = all.layout();
  return (all.*view)(layout.experts, {layout.total - layout.experts});
}

velo::buckets make_buckets(const member& rank, velo_group group, const velo::tensor_view& gradients,
                           const std::vector<std::int64_t>& counts, bool sharded, double scale) {
  velo_buckets_desc desc = VELO_BUCKETS_DESC_INIT;
  desc.mode = sharded ? VELO_BUCKETS_REDUCE_SCATTER : VELO_BUCKETS_ALL_REDUCE;
  desc.scale = scale;
  return velo::buckets::create(rank.data_parallel_stream(), group, gradients, counts.data(),
                               static_cast<std::int64_t>(counts.size()), desc);
}

// The sizes of slices that begin there, one behind the other.
std::vector<std::int64_t> sizes_of(std::vector<std::int64_t> begins, std::int64_t end) {
  begins.push_back(end);
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) counts.push_back(begins[i + 1] - begins[i]);
  return counts;
}

}  // namespace

data_parallel::slices::slices(const weight_layout& all)
    : layers(all.layers.size(), none), expert_layers(all.layers.size(), none) {
  std::vector<std::int64_t> begins, expert_begins;
  const auto add = [](std::int64_t begin, std::vector<std::int64_t>& to) {
    if (begin < 0) return none;
    to.push_back(begin);
    return static_cast<std::int64_t>(to.size()) - 1;
  };
  norms = add(all.decayed > 0 ? 0 : none, begins);
  embedding = add(all.embedding, begins);
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i] = add(all.layers[i].qkv, begins);
  const bool tied = all.head == all.embedding && all.head >= 0;
  head = tied ? embedding : add(all.head, begins);
  for (std::size_t i = 0; i < layers.size(); ++i)
    expert_layers[i] = add(all.layers[i].experts_up, expert_begins);
  counts = sizes_of(std::move(begins), all.experts);
  expert_counts = sizes_of(std::move(expert_begins), all.total);
}

data_parallel::data_parallel(const member& rank, const weights& of, bool sharded)
    : stream_(rank.stream()), slices_(of.layout()) {
  const member::part& copies = rank.expert_copies();
  if (rank.is_data_parallel())
    buckets_ = make_buckets(rank, rank.data_parallel_group(), dense(of, &weights::gradient),
                            slices_.counts, sharded, 0);
  if (copies.group && !slices_.expert_counts.empty())  // of one rank, too: they are divided
    experts_ = make_buckets(rank, copies.group, experts(of, &weights::gradient),
                            slices_.expert_counts, sharded, 1.0 / rank.data_parallel_ranks());
  const auto add_own = [&](const velo::buckets& from, std::int64_t begin, std::int64_t end) {
    if (!from && begin < end) own_.push_back({begin, end - begin});
    for (std::int64_t i = 0; from && i < from.info().buckets; ++i) {
      const velo_bucket one = from.bucket(i);
      if (one.own_count > 0) own_.push_back({begin + one.own_offset, one.own_count});
    }
  };
  add_own(buckets_, 0, of.layout().experts);
  add_own(experts_, of.layout().experts, of.layout().total);
}

void data_parallel::head_ready() const {
  if (buckets_ && slices_.head != slices_.embedding) buckets_.ready(stream_, slices_.head);
}
void data_parallel::layer_ready(std::size_t layer) const {
  if (buckets_) buckets_.ready(stream_, slices_.layers[layer]);
}
void data_parallel::finish() const {
  if (buckets_) buckets_.finish(stream_);
  if (experts_) experts_.finish(stream_);
}

void data_parallel::gather(const weights& all) const {
  if (buckets_) buckets_.gather(stream_, dense(all, &weights::weight));
  if (experts_) experts_.gather(stream_, experts(all, &weights::weight));
}
void data_parallel::await_embedding() const {
  if (buckets_) buckets_.wait(stream_, slices_.embedding);
}
void data_parallel::await_layer(std::size_t layer) const {
  if (buckets_) buckets_.wait(stream_, slices_.layers[layer]);
  if (experts_ && slices_.expert_layers[layer] != slices::none)
    experts_.wait(stream_, slices_.expert_layers[layer]);
}
void data_parallel::await_head() const {
  if (buckets_) buckets_.wait(stream_, slices_.head);
}
void data_parallel::await_norms() const {
  if (buckets_ && slices_.norms != slices::none) buckets_.wait(stream_, slices_.norms);
}

}  // namespace decoder
