// The stages of a layout: their layers, their costs, the memory of their ranks and the end of a
// step.
#pragma once

#include <vector>

#include "sched/tune/layer_costs.hpp"
#include "sched/tune/tune.hpp"

namespace velo::sched::tune {

// The number of parts into which a layout cuts a sequence, and whether it can: into equal parts
// where the model must have those, else into any of a row at least.
std::int64_t sequence_parts(const training& of, const full_layout& layout);
bool cuts_sequence(const job& of, const full_layout& layout);

// Whether ranks can share the heads of a model whose parts need not be equal.
bool cuts_heads(const model& of, std::int64_t ranks);

// The layers of each stage, or none if there is no such split. Even: as many in each, or one fewer
// in the first and the last. Balanced: among contiguous splits with a layer in every stage but the
// first and the last, one whose slowest stage is fastest; spare capacity goes to the first stages,
// which hold activations longest.
std::vector<std::int32_t> split_layers(const model& of, const layer_costs& costs,
                                       std::int32_t stages, velo_tuning_split how);

// The sum of each stage: its layers, the embedding in the first, the output in the last.
std::vector<layer_cost> stages_of(const model& of, const layer_costs& costs,
                                  const std::vector<std::int32_t>& layers);

// The placements that a layout may have: one, or two where a search decides.
std::vector<placement> placements_of(const velo_tuning_layout& layout);
placement placement_in(const schedule& rows);

// A lower bound of any simulation of the layout's pipeline: the busiest rank's work behind the
// shortest delay until its first input and, if gradients come whole, before the delay back.
double least_seconds(const full_layout& layout, const layer_costs& costs,
                     const std::vector<layer_cost>& stages, const placement& of);

struct step_end {
  double gradients = 0, optimizer = 0;  // seconds, of the rank whose sum is largest
  double seconds() const { return gradients + optimizer; }
};
step_end end_of(const job& training_job, const full_layout& layout,
                const std::vector<layer_cost>& stages, const placement& of);

// The memory of the rank with the stages `own`, without activations.
rank_memory memory_of(const job& training_job, const full_layout& layout, const layer_costs& costs,
                      const std::vector<layer_cost>& stages,
                      const std::vector<std::int32_t>& layers,
                      const std::vector<std::int32_t>& own);

}  // namespace velo::sched::tune
