// Passes that are not part of training: a warm-up, and a dry run of a step.
#include <utility>

#include "examples/decoder/pipeline/pipeline.hpp"

namespace decoder {

void pipeline::warm_up() {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const std::unique_ptr<activations> work = make_work(stages_[i]);
    if (!splits_.are_whole()) splits_.assign(i, 0, plan_.splits() - 1, *work);  // reads most keys
    stages_[i].part.warm_up(stream_, *work);
  }
}

// The executor runs its schedule as in a step, with messages without rows.
std::vector<lifetime> pipeline::dry_run(const memory_settings& with, bool scores) {
  const auto drop_works = [&] {
    for (stage& each : stages_) each.idle.clear(), each.made.clear();
  };
  drop_works();
  recompute(with);
  rank_.memory().begin_dry_run();
  is_dry_ = true;
  run([](std::int64_t, activations&) { return std::int64_t{0}; }, scores);
  drop_works();  // their symbols count
  is_dry_ = false;
  recompute(values_.memory);
  return rank_.memory().end_dry_run();
}

}  // namespace decoder
