// The order of a plan's steps.
//
// A message is started as soon as what it carries is there, before the steps that are computed
// beside it.
//
// A pair of a forward and a backward layer: combine B beside attention F, dispatch F beside experts
// B, dispatch B beside experts F, combine F beside weight gradients of experts, shared experts and
// attention B. Layers are paired while both chunks have one; the rest go by themselves.
//
// A layer by itself: the shared expert beside dispatch F and combine B, the weight gradients of
// experts beside dispatch B. In slices the messages to slice i + 1 and from slice i - 1 travel
// while slice i is computed; cut by sequence, attention of slice i + 1 is computed before the
// experts of slice i, backward after them, and a slice's rows go back before the next ones are
// sent.
//
// The weight gradient of attention waits until the next layer's first message is on its way.
//
// Invariant: each step stands behind all that it needs. Cost: not hot.
#pragma once

#include "sched/sublayers/sublayer_layout.hpp"

namespace velo::sched {

std::vector<velo_sublayer_step> order_sublayers(const sublayer_layout& of);

}  // namespace velo::sched
