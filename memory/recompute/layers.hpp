// How each layer of a pipeline stage is recomputed, by the rules that hosts give as numbers, and
// how many of its micro-batches are in flight.
//
// A stage has `chunks` runs of consecutive layers; chunk c of rank r begins at layer (c *
// pipeline_size + r) * (layers of a chunk). Layers of a stage have priorities: the position in the
// chunk, or, if numbers count for the whole stage, position * chunks + chunk, so that every chunk
// contributes its first layers first. The first layers by priority are recomputed whole, the next
// ones in the finer ways. O(layers of the stage).
#pragma once

#include <cstdint>
#include <vector>

#include "velo/recompute.h"

namespace velo::memory {

// Throws VELO_ERR_ARGUMENT naming the field of `rule` that is invalid, alone or beside another
// field.
void check_rule(const velo_recompute_rule& rule);

// The layers of the rule's stage, chunk by chunk; checks the rule.
std::vector<velo_recompute_layer> layers_of(const velo_recompute_rule& rule);

}  // namespace velo::memory
