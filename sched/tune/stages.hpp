// A layout's stages: which layers each has, what it costs, what its rank's memory and the end of a
// step come to.
#pragma once

#include <vector>

#include "sched/tune/parts.hpp"
#include "sched/tune/tune.hpp"

namespace velo::sched::tune {

// Parts into which a layout cuts a sequence, all of one size.
std::int64_t sequence_parts(const training& of, const velo_tuning_layout& layout);

// Layers of each stage, or none where there is no such split. Even: as many in each, or one fewer
// in the first and the last. Balanced: of contiguous splits with a layer in every stage but the
// first and the last, one whose slowest stage is fastest; what room that leaves goes to the first
// stages, which hold activations longest.
std::vector<std::int32_t> split_layers(const model& of, const parts& costs, std::int32_t stages,
                                       velo_tuning_split how);

// The sum of each stage: its layers, the embedding in the first, the output in the last.
std::vector<part> stages_of(const model& of, const parts& costs,
                            const std::vector<std::int32_t>& layers);

// Stages of every rank, by chunk.
using placement = std::vector<std::vector<std::int32_t>>;
// The placements that a layout may have: one, or two where a search decides.
std::vector<placement> placements_of(const velo_tuning_layout& layout);
placement placement_in(const schedule& rows);

// No simulation of the layout's pipeline takes less: the busiest rank's work behind the shortest
// way to it, and where gradients come whole, before the way back.
double least_seconds(const velo_tuning_layout& layout, const parts& costs,
                     const std::vector<part>& stages, const placement& of);

struct step_end {
  double gradients = 0, optimizer = 0;  // seconds, of the rank whose sum is largest
  double seconds() const { return gradients + optimizer; }
};
step_end end_of(const job& what, const velo_tuning_layout& layout, const std::vector<part>& stages,
                const placement& of);

// Of the rank that has the stages `own`, but for activations.
rank_memory memory_of(const job& what, const velo_tuning_layout& layout, const parts& costs,
                      const std::vector<part>& stages, const std::vector<std::int32_t>& layers,
                      const std::vector<std::int32_t>& own);

}  // namespace velo::sched::tune
