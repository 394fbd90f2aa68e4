// Data parallelism: gradients are averaged over the ranks with the same weights, and weights that
// each rank has updated in part are gathered.
//
// Gradients are reduced bucket by bucket on a stream of their own, layer by layer, beside the
// backward pass. With a sharded optimizer each rank gets the averages for its own ranges of the
// weights, updates these, and the weights are gathered in the order in which they are needed.
// velo::buckets does the work; this class says which weights belong together.
//
// Experts are shared with other ranks than the rest. Their gradients, which have the rows of
// several ranks already, are summed and divided by the number of data-parallel ranks. `finish`
// reduces them after all others, so that ranks in groups of both kinds call collectives in one
// order.
#pragma once

#include <cstdint>
#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/ranks/member.hpp"
#include "examples/decoder/weights/weights.hpp"

namespace decoder {

class data_parallel {
 public:
  // Rank and weights must outlive the object.
  data_parallel(const member& rank, const weights& of, bool sharded);

  // Whether a rank shares weights with another one.
  static bool is_needed(const member& rank) {
    return rank.is_data_parallel() || rank.expert_copies().ranks > 1;
  }

  // The backward pass has finished these gradients and does not touch them again. `finish` waits
  // for the averages of all gradients.
  void head_ready() const;
  void layer_ready(std::size_t layer) const;
  void finish() const;

  // The ranges that this rank averages and updates, in the order of the layout. The ranks' ranges
  // cover all.
  const std::vector<range>& own() const { return own_; }

  // `gather` begins to gather the weights; the others wait for those of a part of the model.
  void gather(const weights& all) const;
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
    std::vector<std::int64_t> expert_counts, expert_layers;
  };

  velo::stream_ref stream_;
  slices slices_;
  velo::buckets buckets_, experts_;  // empty: this rank shares none of them
  std::vector<range> own_;
};

}  // namespace decoder
