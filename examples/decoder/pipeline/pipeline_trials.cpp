// Passes that are not part of training: a warm-up, measurements of recompute, and a dry run of a
// step.
#include <utility>

#include "examples/decoder/pipeline/pipeline.hpp"

namespace decoder {

// Activations for a micro-batch, or for the split that reads most keys.
std::unique_ptr<activations> pipeline::make_trial(std::size_t stage) {
  std::unique_ptr<activations> work = make_work(stages_[stage]);
  if (!splits_.are_whole()) splits_.assign(stage, 0, plan_.splits() - 1, *work);
  return work;
}

void pipeline::warm_up() {
  for (std::size_t i = 0; i < stages_.size(); ++i) stages_[i].part.warm_up(stream_, *make_trial(i));
}

std::vector<recompute_cost> pipeline::measure(bool keeps_middle) {
  for (std::size_t i = 0; i < stages_.size(); ++i)
    if (stages_[i].part.has_layers())
      return stages_[i].part.measure(stream_, *make_trial(i), keeps_middle);
  std::vector<recompute_cost> none;  // as many as others have, which compare them one by one
  for (const velo_recompute_kind kind : measured_kinds) none.push_back({kind, 0, 0});
  return none;
}

// The executor runs its schedule as in a step, with messages without rows.
std::vector<lifetime> pipeline::dry_run(const std::vector<layer_recompute>& with, bool scores) {
  const auto drop_works = [&] {
    for (stage& each : stages_) each.idle.clear(), each.made.clear();
  };
  drop_works();
  const std::vector<layer_recompute> before = recompute_;
  recompute(with);
  rank_.memory().begin_dry_run();
  is_dry_ = true;
  run([](std::int64_t, activations&) { return std::int64_t{0}; }, scores);
  drop_works();  // their symbols count
  is_dry_ = false;
  recompute(before);
  return rank_.memory().end_dry_run();
}

}  // namespace decoder
