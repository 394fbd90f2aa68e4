// In which order an FB goes through the parts of its layers, where these have experts on other
// ranks.
//
// A layer forward is attention, a message that takes tokens to their experts (dispatch), the
// experts, a message back (combine); backward the same from its end. The forward of one chunk and
// the backward of another have nothing to do with each other, so each one's messages go while the
// other computes: combine B beside attention F, dispatch F beside experts B, dispatch B beside
// experts F, combine F beside attention B. Gradients of weights are put behind where something
// waits: experts' beside dispatch B, the last attention's beside the message to the stage before.
// Layers go in pairs while both chunks have one, the rest by themselves: there the shared expert,
// which all tokens go through, hides dispatch forward and combine backward, and the experts'
// weights hide dispatch backward.
#pragma once

#include <cstdint>
#include <vector>

#include "velo/sublayers.h"

namespace velo::sched {

std::vector<velo_sublayer_step> sublayer_plan(std::int32_t forward_layers,
                                              std::int32_t backward_layers);

}  // namespace velo::sched
