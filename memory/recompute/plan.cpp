// Adding operations, and finding and reading steps.
#include "memory/recompute/plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "memory/recompute/exact.hpp"

namespace velo::memory {

using core::fail;
using core::text;

namespace {

constexpr std::int64_t most_ops = 1 << 20;
constexpr std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();

template <class T>
void make_room(std::vector<T>& list, std::size_t more) {
  if (list.capacity() - list.size() < more) list.reserve(2 * list.size() + more + 16);
}

// Returns the inputs sorted and without repetitions.
std::vector<std::int32_t> read_inputs(const velo_recompute_op& op, std::int64_t index) {
  std::vector<std::int32_t> inputs;
  inputs.reserve(static_cast<std::size_t>(op.input_count));
  for (std::int64_t i = 0; i < op.input_count; ++i) {
    if (op.inputs[i] < 0 || op.inputs[i] >= index)
      fail(VELO_ERR_ARGUMENT, core::concat("op.inputs[", i, "]"),
           core::concat("the index of one of ", index, " operations before this one"),
           core::number(op.inputs[i]));
    inputs.push_back(static_cast<std::int32_t>(op.inputs[i]));
  }
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  return inputs;
}

}  // namespace

std::int64_t recompute_plan::add(const velo_recompute_op& op) {
  const std::int64_t index = graph_.size();
  if (index >= most_ops)
    fail(VELO_ERR_ARGUMENT, "plan", core::concat("fewer than ", most_ops, " operations"),
         core::number(index));
  const std::vector<std::int32_t> inputs = read_inputs(op, index);
  const auto room = static_cast<std::uint64_t>(most_bytes - bytes_);
  if (op.bytes > room || op.workspace > room - op.bytes)
    fail(VELO_ERR_ARGUMENT, op.bytes > room ? "op.bytes" : "op.workspace",
         "sizes whose sum over all operations is less than 2^63",
         core::number(op.bytes > room ? op.bytes : op.workspace));
  make_room(graph_.seconds, 1);
  make_room(graph_.bytes, 1);
  make_room(graph_.workspace, 1);
  make_room(graph_.keep, 1);
  make_room(graph_.inputs.begins, 1);
  make_room(graph_.inputs.numbers, inputs.size());  // the last statement that can fail
  graph_.seconds.push_back(op.seconds);
  graph_.bytes.push_back(static_cast<std::int64_t>(op.bytes));
  graph_.workspace.push_back(static_cast<std::int64_t>(op.workspace));
  graph_.keep.push_back(static_cast<std::uint8_t>(op.keep));
  graph_.inputs.numbers.insert(graph_.inputs.numbers.end(), inputs.begin(), inputs.end());
  graph_.inputs.begins.push_back(graph_.inputs.numbers.size());
  bytes_ += static_cast<std::int64_t>(op.bytes + op.workspace);
  schedule_ = {};
  is_solved_ = false;
  return index;
}

void recompute_plan::solve(std::int64_t budget, std::uint64_t seed) {
  find_takers(graph_);
  op_schedule found = memory::solve(graph_, budget, seed);
  if (found.steps.empty() && graph_.size() > 0) refuse(budget, seed);
  schedule_ = std::move(found);
  is_solved_ = true;
}

void recompute_plan::refuse(std::int64_t budget, std::uint64_t seed) const {
  const text expected =
      core::concat("at least ", least_budget(graph_, seed), " bytes, ",
                   graph_.size() <= always_exact ? "the least for which steps exist"
                                                 : "for which steps were found");
  for (std::int32_t i = 0; i < graph_.size(); ++i) {
    std::int64_t needed = graph_.bytes[i] + graph_.workspace[i];
    for (const std::int32_t from : graph_.inputs[i]) needed += graph_.bytes[from];
    if (needed <= budget) continue;
    fail(VELO_ERR_ARGUMENT, "options.budget", expected, core::number(budget),
         core::concat("operation ", i, " alone needs ", needed));
  }
  fail(VELO_ERR_ARGUMENT, "options.budget", expected, core::number(budget));
}

void recompute_plan::fill(std::int64_t index, velo_recompute_step& step) const {
  if (!is_solved_) fail(VELO_ERR_STATE, "plan", "a solved plan", "one without steps");
  const auto count = static_cast<std::int64_t>(schedule_.steps.size());
  if (index < 0 || index >= count)
    fail(VELO_ERR_ARGUMENT, "index", core::concat("the index of one of ", count, " steps"),
         core::number(index));
  const op_step& found = schedule_.steps[core::at(index)];
  step.kind = found.computes ? VELO_RECOMPUTE_STEP_COMPUTE : VELO_RECOMPUTE_STEP_FREE;
  step.op = found.op;
}

void recompute_plan::fill(velo_recompute_plan_stats& stats) const {
  stats.solved = is_solved_ ? 1 : 0;
  stats.ops = static_cast<std::uint64_t>(graph_.size());
  stats.steps = schedule_.steps.size();
  stats.bytes_all = static_cast<std::uint64_t>(peak_of_all(graph_));
  stats.bytes_peak = static_cast<std::uint64_t>(schedule_.peak);
  stats.seconds = seconds_once(graph_);
  stats.seconds_more = !is_solved_ ? 0 : std::max(schedule_.seconds - stats.seconds, 0.0);
  stats.optimal = is_solved_ && schedule_.is_optimal ? 1 : 0;
}

}  // namespace velo::memory
