// The simulations that a policy runs, and the best schedule as JSON.
#include "memory/swap/plan/swap_schedule.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/handle/failure.hpp"
#include "core/text/print.hpp"
#include "memory/swap/plan/simulation.hpp"
#include "memory/swap/plan/stages.hpp"

namespace velo::memory {

using core::append;

namespace {

void require_budget(const swap_stages& step, std::int64_t budget) {
  const auto most = std::max_element(step.needed.begin(), step.needed.end());
  if (most == step.needed.end() || *most <= budget) return;
  core::fail(
      VELO_ERR_ARGUMENT, "options.budget",
      core::text("at least %lld bytes, needed at once at time %lld", static_cast<long long>(*most),
                 static_cast<long long>(step.ends[most - step.needed.begin()])),
      core::text("%lld", static_cast<long long>(budget)));
}

// The simulation with the least stall of all variants; the first, without drops, always succeeds.
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
  std::string all;
  append(all, "{\"policy\":\"%s\",\"budget\":%llu,\"bytes_live\":%lld,\"bytes_peak\":%lld,",
         name_of(options.policy), static_cast<unsigned long long>(options.budget),
         static_cast<long long>(schedule.peak_live), static_cast<long long>(schedule.peak));
  append(all, "\"bytes_out\":%lld,\"bytes_in\":%lld,", static_cast<long long>(schedule.bytes_out),
         static_cast<long long>(schedule.bytes_in));
  append(all, "\"compute_seconds\":%.9g,\"stall_seconds\":%.9g,\"bound_seconds\":%.9g,",
         schedule.compute, schedule.stall, schedule.bound);
  all += "\"transfers\":[";
  for (const swap_transfer& t : schedule.transfers) {
    append(all, "%s\n{\"action\":\"%s\",\"buffer\":%lld,\"after\":%lld,\"before\":%lld,",
           &t == schedule.transfers.data() ? "" : ",", name_of_action(t.action),
           static_cast<long long>(t.buffer), static_cast<long long>(t.after),
           static_cast<long long>(t.before));
    append(all, "\"begin\":%.9g,\"end\":%.9g,\"stay\":%lld}", t.begin, t.end,
           static_cast<long long>(t.stay));
  }
  all += "\n]";
  if (schedule.placed) {
    append(all, ",\"bytes_planned\":%lld,\"stays\":[", static_cast<long long>(schedule.height));
    for (const swap_stay& s : schedule.stays) {
      append(all, "%s\n{\"buffer\":%lld,\"bytes\":%lld,\"begin\":%lld,\"end\":%lld,",
             &s == schedule.stays.data() ? "" : ",", static_cast<long long>(s.buffer),
             static_cast<long long>(s.bytes), static_cast<long long>(s.begin),
             static_cast<long long>(s.end));
      append(all, "\"offset\":%lld}", static_cast<long long>(s.offset));
    }
    all += "\n]";
  }
  return all + "}\n";
}

}  // namespace velo::memory
