// Generates a schedule: calls the kind's generator, checks the cap, and appends OPTIMIZER to rows.
#include "sched/pipeline/generate.hpp"

#include <algorithm>
#include <cmath>

#include "core/failure.hpp"
#include "sched/pipeline/kinds.hpp"
#include "sched/simulate/simulate.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::text;

const char* noun_of(double count) {
  return count == 1 ? "micro-batch" : "micro-batches";
}

// A search counts all stages as equal. If they differ, the memory of an order is known only
// afterwards.
void require_cap(const request& wanted, const schedule& result) {
  const ticks scale = ticks_of(wanted.costs, result.sizes(), result.actions());
  std::vector<stuck_rank> stuck;
  std::int64_t peak = 0;
  for (const rank_times& rank : simulate(result, scale, stuck).ranks)
    peak = std::max(peak, rank.peak);
  const double holds = scale.in_microbatches(peak, result.sizes());
  if (holds > wanted.cap)
    fail(VELO_ERR_ARGUMENT, "desc.cap",
         text("room in which an order is found; the one found holds %g %s", holds, noun_of(holds)),
         text("%g", wanted.cap));
}

// Appends OPTIMIZER actions to the rows.
schedule with_updates(const schedule& pipeline) {
  if (pipeline.actions() > most_listed)
    fail(VELO_ERR_ARGUMENT, "desc.flags",
         core::concat("OPTIMIZER behind at most ", most_listed, " actions"),
         core::number(pipeline.actions()));
  placement stages;
  std::vector<row> rows;
  for (std::int32_t rank = 0; rank < pipeline.sizes().ranks; ++rank) {
    stages.push_back(pipeline.stages_of(rank));
    const std::int64_t length = pipeline.length(rank);
    std::vector<action> all(static_cast<std::size_t>(length));
    pipeline.read(rank, 0, length, all.data());
    for (const std::int32_t stage : stages.back())
      all.push_back(make_action(VELO_ACTION_OPTIMIZER, stage, -1));
    rows.emplace_back(std::move(all));
  }
  schedule result(pipeline.sizes(), std::move(stages), std::move(rows));
  result.set_layers(pipeline.shared_layers());
  return result;
}

}  // namespace

void refuse_cap(const request& wanted, double enough) {
  // Rounded up to four decimals, so that the printed number itself suffices.
  const double rounded = std::ceil(enough * 1e4) / 1e4;
  fail(VELO_ERR_ARGUMENT, "desc.cap",
       text("room in which an order is found, such as %.10g %s", rounded, noun_of(rounded)),
       text("%g", wanted.cap));
}

schedule generate(const request& wanted) {
  if (wanted.kind == VELO_SCHEDULE_CUSTOM) return {};
  schedule result = row_of(wanted.kind).make(wanted);
  result.set_layers(wanted.layers);
  if (wanted.cap != 0 && !wanted.costs.shares.empty()) require_cap(wanted, result);
  return wanted.updates ? with_updates(result) : result;
}

}  // namespace velo::sched
