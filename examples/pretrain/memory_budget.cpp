// The peak with the recompute that was asked for, and with all of it.
#include "examples/pretrain/memory_budget.hpp"

#include <string>

#include "examples/decoder/report/progress.hpp"

namespace pretrain {
namespace {

constexpr std::int64_t fixed_margin = 1 << 19;

// The most bytes of buffers for which the pool needs no more than the budget.
std::int64_t without_margin(std::int64_t budget) {
  const std::int64_t rest = budget - fixed_margin;
  return rest - (rest + 1) / 101;
}

}  // namespace

std::int64_t with_margin(std::int64_t bytes) {
  return bytes + bytes / 100 + fixed_margin;
}

budget_answer keep_to_budget(const memory_settings& asked, trainer& of, run_memory& memory) {
  const std::int64_t budget = asked.memory_budget;
  const bool adaptive = asked.recompute == "adaptive";
  const bool fits = adaptive && of.adapt(without_margin(budget));
  const std::int64_t peak = of.peak_bytes(asked);
  if (adaptive ? !fits : with_margin(peak) > budget) {
    memory_settings least = asked;
    least.recompute = "full";
    least.recompute_layers = 0;
    const std::int64_t other = of.peak_bytes(least);
    const std::int64_t live = adaptive ? other : peak;
    std::string why = "must be at least " + std::to_string(with_margin(live)) + " (" +
                      scaled_bytes(with_margin(live)) + ": " + scaled_bytes(live) +
                      " and room for holes)";
    if (!adaptive && other < peak)
      why += ", or " + std::to_string(with_margin(other)) + " with recompute = full";
    return {peak, why};
  }
  memory.set_limit(budget);
  return {peak, ""};
}

}  // namespace pretrain
