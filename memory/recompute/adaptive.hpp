// The choice of modules to recompute at a budget, from their measurements, and the bisection that
// finds a device's real budget.
//
// Modules form a forest: a layer, its parts, and their parts. Either a module is recomputed as a
// whole from its input, or each of its parts is decided separately and the rest of it is kept. The
// Pareto-optimal combinations of a tree (by bytes and seconds) are one class of a knapsack
// (memory/recompute/knapsack.hpp), since trees share only the budget. Bytes count once for each of
// the layer's micro-batches in flight, seconds once.
#pragma once

#include <cstdint>
#include <vector>

#include "velo/recompute.h"

namespace velo::memory {

struct adaptive_choice {
  std::vector<std::int32_t> recomputed;  // by module: 1: recomputed as a whole
  velo_recompute_choice numbers{};
};

// The next budget to try, or the bisection's result, and the choice at that budget. rule: a checked
// adaptive rule. Throws VELO_ERR_ARGUMENT naming the module, or the least budget that works.
adaptive_choice choose_modules(const velo_recompute_rule& rule, const velo_recompute_budget& budget,
                               const velo_recompute_module* modules, std::int64_t count);

}  // namespace velo::memory
