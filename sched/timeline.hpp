// When a schedule's actions begin and end: what pictures and numbers are made of.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "sched/simulate.hpp"

namespace velo::sched {

struct timeline {
  std::shared_ptr<const schedule> of;
  simulation times;

  double in_units(std::int64_t ticks) const { return times.scale.value(ticks); }
  // Stages and units as micro-batches through a whole rank.
  double in_microbatches(std::int64_t activations) const {
    const shape& what = of->what();
    return static_cast<double>(activations * what.ranks * what.chains) /
           (static_cast<double>(what.stages) * what.splits);
  }
};

// The timeline of a schedule; throws STATE naming the first rank that would wait for ever.
timeline simulate(std::shared_ptr<const schedule> of, const costs& given);

// The numbers as a text, for people and as JSON.
std::string write_summary(const timeline& of);
std::string write_summary_json(const timeline& of);

}  // namespace velo::sched
