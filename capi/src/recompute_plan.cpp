// Entries of velo/recompute_plan.h.
#include "velo/recompute_plan.h"

#include <limits>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "memory/recompute/graph.hpp"
#include "memory/recompute/plan.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t op_size = 48;
constexpr std::uint32_t options_size = 24;
constexpr std::uint32_t step_size = 16;
constexpr std::uint32_t stats_size = 64;
static_assert(sizeof(velo_recompute_op) >= op_size &&
              sizeof(velo_recompute_plan_options) >= options_size &&
              sizeof(velo_recompute_step) >= step_size &&
              sizeof(velo_recompute_plan_stats) >= stats_size);

constexpr std::int64_t most_inputs = 1 << 20;

memory::recompute_plan& plan_of(velo_recompute_plan handle) {
  return core::use<memory::recompute_plan>(handle, "plan");
}

velo_recompute_op read_op(const velo_recompute_op* given) {
  const velo_recompute_op op = capi::read_struct(given, op_size, "op", {});
  if (op.keep < 0 || op.keep > 1) fail(VELO_ERR_ARGUMENT, "op.keep", "0 or 1", text("%d", op.keep));
  if (!(op.seconds >= 0 && op.seconds <= memory::most_seconds))
    fail(VELO_ERR_ARGUMENT, "op.seconds", text("0 to %g", memory::most_seconds),
         text("%g", op.seconds));
  if (op.input_count < 0 || op.input_count > most_inputs)
    fail(VELO_ERR_ARGUMENT, "op.input_count", core::concat("0 to ", most_inputs),
         core::number(op.input_count));
  if (op.inputs == nullptr && op.input_count > 0)
    fail(VELO_ERR_NULL, "op.inputs", "a list of input_count", "NULL");
  return op;
}

}  // namespace

extern "C" {

velo_status velo_recompute_plan_create(velo_recompute_plan* plan) {
  return core::guard("velo_recompute_plan_create", [&] {
    capi::required(plan, "plan");
    *plan = core::handle_of(core::make_object<memory::recompute_plan>(nullptr));
  });
}

void velo_recompute_plan_destroy(velo_recompute_plan plan) {
  capi::destroy<memory::recompute_plan>("velo_recompute_plan_destroy", plan, "plan");
}

velo_status velo_recompute_plan_add(velo_recompute_plan plan, const velo_recompute_op* op,
                                    int64_t* index) {
  return core::guard("velo_recompute_plan_add", [&] {
    memory::recompute_plan& to = plan_of(plan);
    const std::int64_t added = to.add(read_op(op));
    if (index != nullptr) *index = added;
  });
}

velo_status velo_recompute_plan_solve(velo_recompute_plan plan,
                                      const velo_recompute_plan_options* options) {
  return core::guard("velo_recompute_plan_solve", [&] {
    memory::recompute_plan& given = plan_of(plan);
    const velo_recompute_plan_options defaults = VELO_RECOMPUTE_PLAN_OPTIONS_INIT;
    const velo_recompute_plan_options how =
        capi::read_struct(options, options_size, "options", defaults);
    if (how.budget > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      fail(VELO_ERR_ARGUMENT, "options.budget", "less than 2^63", core::number(how.budget));
    given.solve(static_cast<std::int64_t>(how.budget), how.seed);
  });
}

velo_status velo_recompute_plan_get_step(velo_recompute_plan plan, int64_t index,
                                         velo_recompute_step* step) {
  return core::guard("velo_recompute_plan_get_step", [&] {
    velo_recompute_step found{};
    plan_of(plan).fill(index, found);
    capi::write_struct(step, step_size, "step", found);
  });
}

velo_status velo_recompute_plan_get_stats(velo_recompute_plan plan,
                                          velo_recompute_plan_stats* stats) {
  return core::guard("velo_recompute_plan_get_stats", [&] {
    velo_recompute_plan_stats now{};
    plan_of(plan).fill(now);
    capi::write_struct(stats, stats_size, "stats", now);
  });
}
}
