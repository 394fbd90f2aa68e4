// The simulations that a policy runs, and the best schedule as JSON.
#include "memory/swap/plan/swap_schedule.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/failure.hpp"
#include "core/text/json_writer.hpp"
#include "memory/swap/plan/simulation.hpp"
#include "memory/swap/plan/stages.hpp"

namespace velo::memory {

namespace {

void require_budget(const swap_stages& step, std::int64_t budget) {
  const auto most = std::max_element(step.needed.begin(), step.needed.end());
  if (most == step.needed.end() || *most <= budget) return;
  core::fail(VELO_ERR_ARGUMENT, "options.budget",
             core::concat("at least ", *most, " bytes, needed at once at time ",
                          step.ends[most - step.needed.begin()]),
             core::number(budget));
}

// The simulation with the least stall among all variants. The first variant, without drops, always
// succeeds.
swap_schedule best_of(const swap_stages& step, const velo_swap_options& options) {
  std::vector<swap_ways> ways = {{options.policy, true, 0}};
  if (options.policy == VELO_SWAP_JOINT) {
    constexpr double all = std::numeric_limits<double>::infinity();
    ways = {{VELO_SWAP_FURTHEST, true, 0},
            {VELO_SWAP_SMART, true, 0},
            {VELO_SWAP_FURTHEST, false, all}};
    for (const velo_swap_policy policy : {VELO_SWAP_FURTHEST, VELO_SWAP_SMART})
      for (const double below : {0.5, 1.0, all}) ways.push_back({policy, true, below});
  }
  std::optional<swap_schedule> best;
  for (const swap_ways& w : ways) {
    std::optional<swap_schedule> plan = simulate_swaps(step, options, w);
    if (plan && (!best || plan->stall < best->stall)) best = std::move(plan);
  }
  if (!best) core::fail(VELO_ERR_INTERNAL, "plan", "a way to begin each stage", "none");
  return *std::move(best);
}

const char* name_of(velo_swap_policy policy) {
  return policy == VELO_SWAP_FURTHEST ? "furthest" : policy == VELO_SWAP_SMART ? "smart" : "joint";
}
const char* name_of_action(velo_swap_action action) {
  constexpr const char* names[] = {"in", "out", "drop", "make"};
  return names[action];
}

}  // namespace

swap_schedule plan_swaps(const std::vector<lifetime>& buffers, const plan_uses& uses,
                         const velo_swap_options& options) {
  const swap_stages step =
      make_stages(buffers, uses, options.seconds, static_cast<std::int64_t>(options.least_bytes));
  require_budget(step, static_cast<std::int64_t>(options.budget));
  swap_schedule plan = best_of(step, options);
  plan.peak_live = step.live.empty() ? 0 : *std::max_element(step.live.begin(), step.live.end());
  if (options.policy != VELO_SWAP_JOINT)
    plan.bound = swap_bound(step, static_cast<std::int64_t>(options.budget),
                            options.out_bytes_per_second, options.in_bytes_per_second);
  return plan;
}

std::string write_swaps(const swap_schedule& schedule, const velo_swap_options& options) {
  constexpr int digits = 9;
  std::string all;
  core::json_writer to(all);
  to.object().member("policy", name_of(options.policy)).member("budget", options.budget);
  to.member("bytes_live", schedule.peak_live).member("bytes_peak", schedule.peak);
  to.member("bytes_out", schedule.bytes_out).member("bytes_in", schedule.bytes_in);
  to.key("compute_seconds").value(schedule.compute, digits);
  to.key("stall_seconds").value(schedule.stall, digits);
  to.key("bound_seconds").value(schedule.bound, digits);
  to.key("transfers").array();
  for (const swap_transfer& t : schedule.transfers) {
    to.line().object().member("action", name_of_action(t.action)).member("buffer", t.buffer);
    to.member("after", t.after).member("before", t.before);
    to.key("begin").value(t.begin, digits).key("end").value(t.end, digits);
    to.member("stay", t.stay).end();
  }
  to.line().end();
  if (schedule.placed) {
    to.member("bytes_planned", schedule.height).key("stays").array();
    for (const swap_stay& s : schedule.stays) {
      to.line().object().member("buffer", s.buffer).member("bytes", s.bytes);
      to.member("begin", s.begin).member("end", s.end).member("offset", s.offset).end();
    }
    to.line().end();
  }
  to.end();
  return all + "\n";
}

}  // namespace velo::memory
