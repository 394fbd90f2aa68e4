// The order in which an FB goes through the parts of its layers if they have experts on other
// ranks.
//
// A layer's forward is attention, a message that takes tokens to their experts (dispatch), the
// experts, and a message back (combine); the backward is the reverse. The forward of one chunk and
// the backward of another are independent, so the messages of each run while the other computes:
// combine B beside attention F, dispatch F beside experts B, dispatch B beside experts F, combine F
// beside attention B. Gradients of weights are delayed to where a rank would wait: those of experts
// beside dispatch B, those of the last attention beside the message to the previous stage.
//
// Layers are paired while both chunks have one; the rest run alone. There the shared expert,
// through which all tokens go, hides dispatch forward and combine backward, and the experts'
// weights hide dispatch backward.
#pragma once

#include <cstdint>
#include <vector>

#include "velo/sublayers.h"

namespace velo::sched {

std::vector<velo_sublayer_step> sublayer_plan(std::int32_t forward_layers,
                                              std::int32_t backward_layers);

}  // namespace velo::sched
