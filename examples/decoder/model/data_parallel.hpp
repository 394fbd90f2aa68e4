// How gradients become those of all ranks, and weights that ranks have updated in part become
// whole.
//
// Gradients go bucket by bucket, on a stream of their own, as the backward pass makes them: layer
// by layer. With a sharded optimizer each rank gets them for its own ranges of the weights alone,
// updates these, and the weights are gathered in the order in which they are needed. All of it is
// velo::buckets' work; what is here says which weights belong together.
#pragma once

#include <cstdint>
#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/model/layout.hpp"
#include "examples/decoder/ranks/member.hpp"

namespace decoder {

class exchange {
 public:
  // Of several ranks that hold the same weights. `gradients`: one row in this layout; rank and
  // gradients must outlive the exchange.
  exchange(const member& rank, const weight_layout& layout, const velo::tensor_view& gradients,
           bool sharded);

  // What the backward pass has finished, and is then not to touch; the rest is, when it ends.
  void head_ready() const;
  void layer_ready(std::size_t layer) const;
  void finish() const;  // has the gradients of all ranks

  // What this rank sums and updates, in the order of the layout: together the ranks have all.
  const std::vector<range>& own() const { return own_; }

  // Begins to gather weights; and waits for those of a part of the model.
  void gather(const velo::tensor_view& weights) const;
  void await_embedding() const;
  void await_layer(std::size_t layer) const;
  void await_head() const;
  void await_norms() const;

 private:
  // Elements of each, and which is whose; none: another rank's.
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
