// Data parallelism: gradients are averaged over the ranks with the same weights, and weights that
// each rank has updated in part are gathered.
//
// Gradients are reduced bucket by bucket on a stream of their own, layer by layer, beside the
// backward pass. With a sharded optimizer each rank gets the averages for its own ranges of the
// weights, updates these, and the weights are gathered in the order in which they are needed.
// velo::buckets does the work; this class says which weights belong together.
#pragma once

#include <cstdint>
#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/ranks/member.hpp"
#include "examples/decoder/weights/layout.hpp"

namespace decoder {

class data_parallel {
 public:
  // `gradients` is one row in this layout. Rank and gradients must outlive the object.
  data_parallel(const member& rank, const weight_layout& layout, const velo::tensor_view& gradients,
                bool sharded);

  // The backward pass has finished these gradients and does not touch them again. `finish` waits
  // for the averages of all gradients.
  void head_ready() const;
  void layer_ready(std::size_t layer) const;
  void finish() const;

  // The ranges that this rank averages and updates, in the order of the layout. The ranks' ranges
  // cover all.
  const std::vector<range>& own() const { return own_; }

  // `gather` begins to gather the weights; the others wait for those of a part of the model.
  void gather(const velo::tensor_view& weights) const;
  void await_embedding() const;
  void await_layer(std::size_t layer) const;
  void await_head() const;
  void await_norms() const;

 private:
  // The elements of each slice, and the slice of each part of the model; none: another rank's.
  struct slices {
    explicit slices(const weight_layout& all);
    static constexpr std::int64_t none = -1;
    std::vector<std::int64_t> counts, layers;
    std::int64_t embedding, head, norms;
  };

  velo::stream_ref stream_;
  slices slices_;
  velo::buckets buckets_;
  std::vector<range> own_;
};

}  // namespace decoder
