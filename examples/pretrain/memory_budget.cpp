// The peak with the recompute that was asked for, and with all of it.
#include "examples/pretrain/memory_budget.hpp"

#include <optional>
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
  const std::optional<std::int64_t> found =
      adaptive ? of.adapt(without_margin(budget)) : of.peak_bytes(asked);
  if (!found) return {};
  const std::int64_t peak = *found;
  if (with_margin(peak) > budget) {
    std::string why = "must be at least " + std::to_string(with_margin(peak)) + " (" +
                      scaled_bytes(with_margin(peak)) + ": " + scaled_bytes(peak) +
                      " and room for holes)";
    if (!adaptive) {
      memory_settings least = asked;
      least.recompute = "full";
      least.recompute_layers = 0;
      least.recompute_level = 1;
      const std::int64_t other = of.peak_bytes(least);
      if (other < peak)
        why += ", or " + std::to_string(with_margin(other)) + " with recompute = full";
    }
    return {peak, why};
  }
  memory.set_limit(budget);
  return {peak, ""};
}

}  // namespace pretrain
