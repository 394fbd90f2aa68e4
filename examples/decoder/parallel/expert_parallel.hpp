// Expert parallelism: the experts of a layer are dealt out to ranks in equal parts, and a token's
// row travels to the ranks of its experts and back (velo/dispatcher.h).
//
// Expert ranks are ranks of one stage, tensor ranks and context ranks and copies alike: with
// sequence parallelism each of these has rows of its own. The gradient of an expert's weights has
// the rows of all its expert ranks at once, and is summed over the ranks that have the same
// experts.
//
// Tensor ranks that cut each expert take the rows of all tensor ranks to their parts of the
// experts, and add up the results; expert ranks then are ranks of the same place among tensor
// ranks. The capacity of an expert is that of a whole micro-batch, on all ranks of the stage.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <velo/velo.hpp>

#include "examples/decoder/ranks/member.hpp"

namespace decoder {

// A kind by its name; nullopt: there is none of this name.
std::optional<velo_dispatch_kind> dispatcher_kind(const std::string& name);
std::string dispatcher_names();  // "a, b or c"

class expert_parallel {
 public:
  expert_parallel() = default;  // one rank, where no choice is dropped
  // `rank` must outlive the object.
  expert_parallel(const member& rank, const settings& values);

  bool is_alone() const { return ranks_ == nullptr; }  // has all experts
  int ranks() const { return ranks_ == nullptr ? 1 : ranks_->ranks; }
  bool cuts_experts() const { return cuts_experts_; }  // over tensor ranks

  // The dispatcher of a layer, empty where this rank is alone; and one that drops choices beyond
  // the capacity of an expert, empty for a model without capacity.
  velo::dispatcher dispatcher(const model_settings& m) const;
  velo::dispatcher limited_dispatcher(const model_settings& m) const;

  // Sums counts over all ranks that have tokens of the micro-batch, in place.
  void sum_counts(const velo::stream_ref& stream, const velo::tensor_view& counts) const {
    if (stage_ != nullptr) stage_->group.all_reduce(stream, counts, counts);
  }
  // The ranks whose gradients are averaged.
  int means() const { return means_; }

 private:
  velo_dispatcher_desc desc_of(const model_settings& m) const;
  velo_group group() const;

  const member::part *ranks_ = nullptr, *stage_ = nullptr;
  std::shared_ptr<const velo::group> alone_;  // of this rank, where it has all experts
  velo_dispatch_kind kind_ = VELO_DISPATCH_ALL_TO_ALL;
  velo_group batch_ = nullptr;  // the ranks that have other tokens for experts; nullptr: group()'s
  int means_ = 1;
  bool cuts_experts_ = false;
};

}  // namespace decoder
