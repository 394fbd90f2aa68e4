// The choice of modules to recompute at a budget, from measurements of them, and the bisection that
// finds the budget that a device really has.
//
// Modules form a forest: a layer, its parts, and their parts. A module is either recomputed as a
// whole, from its input, or each of its parts is decided alone and the rest of it is kept. The
// useful combinations of a tree (no other takes less in both bytes and seconds) are one class of a
// knapsack (memory/recompute/knapsack.hpp), since trees only share the budget. Bytes count as often
// as micro-batches of the layer are in flight, seconds once.
#pragma once

#include <cstdint>
#include <vector>

#include "velo/recompute.h"

namespace velo::memory {

struct adaptive_choice {
  std::vector<std::int32_t> recomputed;  // by module: 1 = recomputed, as a whole
  velo_recompute_choice numbers{};
};

// The budget to try next, or the one the bisection ended with, and the choice at it. rule: checked,
// adaptive. Throws VELO_ERR_ARGUMENT naming the module, or the least budget that works.
adaptive_choice choose_modules(const velo_recompute_rule& rule, const velo_recompute_budget& budget,
                               const velo_recompute_module* modules, std::int64_t count);

}  // namespace velo::memory
