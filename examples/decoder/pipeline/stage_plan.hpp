// The stages of a copy of the model, their ranks, and the order of their work.
//
// The order is a schedule of velo's, of the kind in the settings: `pp` ranks, micro-batches =
// accumulation, whose sequences seq1f1b splits. Layers are divided as stage_layers says, else
// evenly, together with the places that noop_layers leaves empty. A stage may have no layer. With
// two chains (dualpipe) micro-batches enter from both ends: every stage exists twice, on a rank of
// either half, and each has half of the micro-batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/model/model.hpp"
#include "examples/decoder/ranks/member.hpp"
#include "examples/decoder/settings.hpp"
#include "examples/decoder/weights/layout.hpp"
#include "tools/velo/stage_layers.hpp"

namespace decoder {

// The names of all kinds.
std::vector<std::string> pipelines();

// The places of a list "0,7", in ascending order; each once; nothing if it is no such list.
std::optional<std::vector<std::int64_t>> places_in(const std::string& list);

class stage_plan {
 public:
  // Throws velo::error if there is no such schedule.
  explicit stage_plan(const settings& values);

  const velo::schedule& order() const { return order_; }
  // The schedule with OPTIMIZER at its end, for post_validation.
  const velo::schedule& order_of_step() const { return order_of_step_; }
  int stages() const { return stages_; }  // of all chains
  int chains() const { return chains_; }
  // Units of a chain, by which the actions of a schedule are numbered: micro-batches, or where
  // sequences are split these of one micro-batch after another.
  int units() const { return units_; }
  int splits() const { return splits_; }
  int microbatch(int stage, int unit) const { return (stage / length() * units_ + unit) / splits_; }
  int split(int unit) const { return unit % splits_; }

  std::vector<int> stages_of(int rank) const;
  stage_range layers_of(int stage) const;
  // The layers of a chain's stages by stage_layers, or the form that the list should have. A list
  // that does not fit leaves the layers dealt out evenly.
  const command::stage_list::result& listed() const { return listed_; }
  // The stages and micro-batches whose activations the schedule has a rank recompute.
  std::vector<velo_action> made_again_by(int rank) const;
  holding held_by(int rank) const;
  // Whether the embedding that is the head, too, lies on two ranks that each use it once.
  bool ties_ends() const;

 private:
  int length() const { return stages_ / chains_; }

  model_settings model_;
  velo::schedule order_, order_of_step_;
  int stages_, chains_, splits_, units_;
  command::stage_list::result listed_;
  std::vector<std::int64_t> counts_;  // layers, by stage of a chain
};

// Cuts the copies of a model over their ranks, as the settings say.
void split(member& rank, const settings& values);

}  // namespace decoder
