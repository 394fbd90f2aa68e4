// When a schedule's actions begin and end: what pictures and numbers are made of.
#pragma once

#include <memory>
#include <string>

#include "sched/simulate/simulate.hpp"

namespace velo::sched {

struct timeline {
  std::shared_ptr<const schedule> of;
  simulation times;
  std::shared_ptr<const spans> measured;  // of a run, in nanoseconds; null where simulated
  memory_sizes sizes = {};

  double in_units(std::int64_t ticks) const { return times.scale.value(ticks); }
  // Stages and units as micro-batches through a whole rank.
  double in_microbatches(std::int64_t activations) const {
    return times.scale.in_microbatches(activations, of->what());
  }
};

// The timeline of a schedule; throws ARGUMENT where costs have no shares for its stages, STATE
// naming the first rank that would wait for ever.
timeline simulate(std::shared_ptr<const schedule> of, const costs& given);

// By rank and action, in ticks. A simulated timeline keeps none: they are worked out again, in the
// time that the simulation took.
std::shared_ptr<const spans> spans_of(const timeline& of);

// Throws ARGUMENT beyond `most_listed` actions.
void require_listed(const timeline& of);

// The numbers as a text, for people and as JSON; of at most `most_drawn` actions with critical path
// and memory.
std::string write_summary(const timeline& of);
std::string write_summary_json(const timeline& of);

// Pictures; throw ARGUMENT where there are more actions than anyone could look at.
std::string draw_svg(const timeline& of);
std::string draw_grid(const timeline& of);    // for terminals
std::string write_trace(const timeline& of);  // for Perfetto and chrome://tracing

}  // namespace velo::sched
