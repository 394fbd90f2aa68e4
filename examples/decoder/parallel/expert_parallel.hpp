// Expert parallelism: the experts of a layer are dealt out to ranks in equal parts, and a token's
// row travels to the ranks of its experts and back (velo/dispatcher.h).
//
// Expert ranks are ranks of one stage, tensor ranks and context ranks and copies alike: with
// sequence parallelism each of these has rows of its own. The gradient of an expert's weights has
// the rows of all its expert ranks at once, and is summed over the ranks that have the same
// experts.
#pragma once

#include <velo/velo.hpp>

#include "examples/decoder/ranks/member.hpp"

namespace decoder {

class expert_parallel {
 public:
  expert_parallel() = default;  // one rank
  // `rank` must outlive the object.
  explicit expert_parallel(const member& rank)
      : ranks_(rank.expert_ranks().ranks == 1 ? nullptr : &rank.expert_ranks()),
        stage_(rank.stage_ranks().ranks == 1 ? nullptr : &rank.stage_ranks()),
        means_(rank.data_parallel_ranks()) {}

  bool is_alone() const { return ranks_ == nullptr; }
  velo_group group() const { return velo_group(ranks_->group); }  // of expert ranks
  int ranks() const { return ranks_ == nullptr ? 1 : ranks_->ranks; }

  // Sums counts over all ranks that have tokens of the micro-batch, in place.
  void sum_counts(const velo::stream_ref& stream, const velo::tensor_view& counts) const {
    if (stage_ != nullptr) stage_->group.all_reduce(stream, counts, counts);
  }
  // The ranks whose gradients are averaged.
  int means() const { return means_; }

 private:
  const member::part *ranks_ = nullptr, *stage_ = nullptr;
  int means_ = 1;
};

}  // namespace decoder
