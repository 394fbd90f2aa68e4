// Plans for recomputation: which outputs of a known step are freed and recomputed.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/recompute_plan.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_recompute_plan {
  static void call(velo_recompute_plan plan) noexcept { VELO_FN(recompute_plan_destroy)(plan); }
};
}  // namespace detail

// Owns a plan for recomputation.
class recompute_plan : public detail::owner<velo_recompute_plan, detail::destroy_recompute_plan> {
 public:
  // A plan without operations.
  static outcome<recompute_plan> create() {
    velo_recompute_plan handle = nullptr;
    const velo_status status = VELO_FN(recompute_plan_create)(&handle);
    recompute_plan made;
    made.reset(handle);
    return detail::finish<recompute_plan>(status, std::move(made));
  }

  operator velo_recompute_plan() const noexcept { return get(); }

  // Adds an operation; returns its index.
  outcome<int64_t> add(const velo_recompute_op& op) const {
    int64_t index = -1;
    const velo_status status = VELO_FN(recompute_plan_add)(get(), &op, &index);
    return detail::finish<int64_t>(status, index);
  }

  // Finds steps within a budget of bytes.
  outcome<> solve(uint64_t budget, uint64_t seed = 1) const {
    velo_recompute_plan_options options = {};
    options.struct_size = sizeof options;
    options.budget = budget;
    options.seed = seed;
    return detail::check(VELO_FN(recompute_plan_solve)(get(), &options));
  }

  // A step by its index.
  outcome<velo_recompute_step> step(int64_t index) const {
    velo_recompute_step found = {};
    found.struct_size = sizeof found;
    const velo_status status = VELO_FN(recompute_plan_get_step)(get(), index, &found);
    return detail::finish<velo_recompute_step>(status, found);
  }

  // The number of steps, their time and their memory.
  outcome<velo_recompute_plan_stats> stats() const {
    velo_recompute_plan_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(recompute_plan_get_stats)(get(), &stats);
    return detail::finish<velo_recompute_plan_stats>(status, stats);
  }
};

static_assert(sizeof(recompute_plan) == sizeof(void*));

VELO_CPP_END
