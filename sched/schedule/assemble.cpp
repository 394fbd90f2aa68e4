// Finding the sizes, then the placement of stages.
#include "sched/schedule/assemble.hpp"

#include <algorithm>
#include <utility>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/round_up.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::text;
using rows_of_actions = std::vector<std::vector<action>>;

// The indices in a rank's row at which a stage computes its forward and its gradient, by
// micro-batch.
struct unit_order {
  std::vector<std::int64_t> forward, gradient;  // missing: none, or more than one
  static constexpr std::int64_t missing = -1;
};

unit_order order_of(const std::vector<action>& row, std::int32_t stage, std::int32_t units) {
  const std::vector<std::int64_t> none(static_cast<std::size_t>(units), unit_order::missing);
  std::vector<std::int8_t> forwards(none.size()), gradients(none.size());
  unit_order all{none, none};
  const auto keep = [&](std::vector<std::int64_t>& at, std::vector<std::int8_t>& seen,
                        std::int32_t unit, std::int64_t index) {
    const auto i = static_cast<std::size_t>(unit);
    at[i] = seen[i] == 0 ? index : unit_order::missing;
    seen[i] = 1;
  };
  for (std::size_t i = 0; i < row.size(); ++i) {
    const action& a = row[i];
    const auto index = static_cast<std::int64_t>(i);
    const bool fuses = a.kind == VELO_ACTION_FB;
    if (has_forward(a.kind) && a.stage == stage) keep(all.forward, forwards, a.microbatch, index);
    if (has_gradient(a.kind) && (fuses ? a.other_stage : a.stage) == stage)
      keep(all.gradient, gradients, fuses ? a.other_microbatch : a.microbatch, index);
  }
  return all;
}

// Whether micro-batches enter from both ends, each end with stages of its own. The stages go down
// the ranks and up again, so the last rank holds the last stage of the first direction and the
// first stage of the second. In one chain a micro-batch passes these two in this order, and its
// gradient in the opposite order. The rows have two chains if every micro-batch reverses both
// orders.
bool has_two_chains(const shape& sizes, const placement& stages, const rows_of_actions& rows,
                    std::int32_t units) {
  if (sizes.ranks == 0 || sizes.stages != 2 * sizes.ranks || stages != v_placement(sizes.ranks, 2))
    return false;
  const unit_order down = order_of(rows.back(), sizes.ranks - 1, units),
                   up = order_of(rows.back(), sizes.ranks, units);
  const auto reversed = [](std::int64_t first, std::int64_t second) {
    return first != unit_order::missing && second != unit_order::missing && first < second;
  };
  for (std::size_t i = 0; i < down.forward.size(); ++i)
    if (!reversed(up.forward[i], down.forward[i]) || !reversed(down.gradient[i], up.gradient[i]))
      return false;
  return units > 0;
}

// The stated number, which must be at least the number that the rows use.
std::int32_t at_least(std::int32_t stated, std::int32_t named, const char* name) {
  if (stated != 0 && stated < named)
    fail(VELO_ERR_ARGUMENT, text("text.%s", name), text("at least the %d that actions name", named),
         text("%d", stated));
  return stated == 0 ? named : stated;
}

// Places each stage on the first rank whose row names it.
placement by_first_naming(const shape& sizes, const rows_of_actions& rows) {
  placement stages(static_cast<std::size_t>(sizes.ranks));
  std::vector<bool> placed(static_cast<std::size_t>(sizes.stages));
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    for (const action& a : rows[rank]) {
      for (const std::int32_t stage : {a.stage, a.other_stage}) {
        if (stage < 0 || placed[core::at(stage)]) continue;
        placed[core::at(stage)] = true;
        stages[rank].push_back(stage);
      }
    }
    std::sort(stages[rank].begin(), stages[rank].end());
  }
  return stages;
}

void require_placement(const shape& sizes, const placement& stages, const rows_of_actions& rows) {
  if (stages.size() != static_cast<std::size_t>(sizes.ranks))
    fail(VELO_ERR_ARGUMENT, "text.placement", text("%d ranks, as actions have", sizes.ranks),
         text("%zu", stages.size()));
  std::vector<bool> placed(static_cast<std::size_t>(sizes.stages));
  for (const auto& of_rank : stages) {
    for (const std::int32_t stage : of_rank) {
      if (stage < 0 || stage >= sizes.stages || placed[core::at(stage)])
        fail(VELO_ERR_ARGUMENT, "text.placement", text("each of %d stages once", sizes.stages),
             text("stage %d", stage));
      placed[core::at(stage)] = true;
    }
  }
  for (const auto& row : rows)
    for (const action& a : row)
      for (const std::int32_t stage : {a.stage, a.other_stage})
        if (stage >= 0 && !placed[core::at(stage)])
          fail(VELO_ERR_ARGUMENT, "text.placement", text("a rank for stage %d", stage), "none");
}

}  // namespace

schedule assemble(std::vector<std::vector<action>> rows, const stated_sizes& beside) {
  shape sizes;
  sizes.kind = beside.kind;
  sizes.ranks = static_cast<std::int32_t>(rows.size());
  std::int64_t actions = 0;
  std::int32_t stages = 0, units = 0;
  for (const auto& row : rows) {
    actions += static_cast<std::int64_t>(row.size());
    for (const action& a : row) {
      stages = std::max({stages, a.stage + 1, a.other_stage + 1});
      units = std::max({units, a.microbatch + 1, a.other_microbatch + 1});
    }
  }
  sizes.splits = std::max(1, beside.splits);
  sizes.stages = at_least(beside.stages, stages, "stages");
  sizes.microbatches = core::ceil_div(units, sizes.splits);
  const auto require_size = [&] {
    if (std::int64_t{sizes.stages} * sizes.microbatches * sizes.splits >
        std::min(most_cells, 16 * actions + 1024))
      fail(VELO_ERR_ARGUMENT, "text", "actions of most stages and micro-batches up to the highest",
           core::concat(actions, " actions, stages up to ", sizes.stages - 1,
                        ", micro-batches up to ", sizes.microbatches - 1));
  };
  require_size();
  placement by_rank = beside.placement.empty() ? by_first_naming(sizes, rows) : beside.placement;
  require_placement(sizes, by_rank, rows);
  sizes.chains = beside.chains != 0                            ? beside.chains
                 : has_two_chains(sizes, by_rank, rows, units) ? 2
                                                               : 1;
  if (sizes.stages % sizes.chains != 0)
    fail(VELO_ERR_ARGUMENT, "text.chains", text("parts of %d stages alike", sizes.stages),
         text("%d", sizes.chains));
  sizes.microbatches =
      at_least(beside.microbatches, sizes.microbatches * sizes.chains, "microbatches");
  if (sizes.microbatches % sizes.chains != 0)
    fail(VELO_ERR_ARGUMENT, "text.microbatches", text("a multiple of %d, the chains", sizes.chains),
         text("%d", sizes.microbatches));
  require_size();
  return {sizes,
          std::move(by_rank),
          {std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end())}};
}

}  // namespace velo::sched
