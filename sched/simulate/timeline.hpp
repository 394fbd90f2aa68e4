// A timeline: the times at which a schedule's actions begin and end. Pictures and summaries are
// made of it.
#pragma once

#include <memory>
#include <string>

#include "core/handle/handle_kinds.hpp"
#include "sched/simulate/simulate.hpp"

namespace velo::sched {

struct timeline {
  std::shared_ptr<const schedule> of;
  simulation times;
  std::shared_ptr<const spans> measured;  // of a run, in nanoseconds; null where simulated
  memory_sizes sizes = {};

  double in_units(std::int64_t ticks) const { return times.scale.value(ticks); }
  // Activations of stages and units expressed as micro-batches through a whole rank.
  double in_microbatches(std::int64_t activations) const {
    return times.scale.in_microbatches(activations, of->sizes());
  }
};

// Simulates a schedule. Throws ARGUMENT if the costs lack shares for its stages, STATE naming the
// first rank that would wait forever.
timeline simulate(std::shared_ptr<const schedule> of, const costs& given);

// Spans by rank and action, in ticks. A simulated timeline stores none: they are computed again, in
// the time of the simulation.
std::shared_ptr<const spans> spans_of(const timeline& of);

// Throws ARGUMENT beyond `most_listed` actions.
void require_listed(const timeline& of);

// Writes the numbers as a text, for people or as JSON; with critical path and memory up to
// `most_drawn` actions.
std::string write_summary(const timeline& of);
std::string write_summary_json(const timeline& of);

// Pictures. They throw ARGUMENT if there are more actions than can be viewed.
std::string draw_svg(const timeline& of);
std::string draw_grid(const timeline& of);    // for terminals
std::string write_trace(const timeline& of);  // for Perfetto and chrome://tracing

}  // namespace velo::sched

template <>
struct velo::core::handle_traits<velo::sched::timeline> {
  using handle = velo_timeline;
  static constexpr handle_kind& kind = kinds::timeline;
};
