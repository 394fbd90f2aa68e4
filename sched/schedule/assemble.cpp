// Sizes first, then places.
#include "sched/schedule/assemble.hpp"

#include <algorithm>
#include <utility>

#include "core/handle/failure.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::text;
using rows_of_actions = std::vector<std::vector<action>>;
using places = std::vector<std::vector<std::int32_t>>;

// Where a stage of a rank computes a micro-batch: the place of its forward and of its gradient,
// once each.
struct turns {
  std::vector<std::int64_t> forward, gradient;  // by micro-batch; missing: none, or more than one
  static constexpr std::int64_t missing = -1;
};

turns turns_of(const std::vector<action>& row, std::int32_t stage, std::int32_t units) {
  const std::vector<std::int64_t> none(static_cast<std::size_t>(units), turns::missing);
  std::vector<std::int8_t> forwards(none.size()), gradients(none.size());
  turns all{none, none};
  const auto keep = [&](std::vector<std::int64_t>& at, std::vector<std::int8_t>& seen,
                        std::int32_t unit, std::int64_t place) {
    const auto i = static_cast<std::size_t>(unit);
    at[i] = seen[i] == 0 ? place : turns::missing;
    seen[i] = 1;
  };
  for (std::size_t i = 0; i < row.size(); ++i) {
    const action& a = row[i];
    const auto place = static_cast<std::int64_t>(i);
    const bool fuses = a.kind == VELO_ACTION_FB;
    if (has_forward(a.kind) && a.stage == stage) keep(all.forward, forwards, a.microbatch, place);
    if (has_gradient(a.kind) && (fuses ? a.other_stage : a.stage) == stage)
      keep(all.gradient, gradients, fuses ? a.other_microbatch : a.microbatch, place);
  }
  return all;
}

// Whether micro-batches come in from both ends, each end with stages of its own. Stages are down
// the ranks and up again; the last rank holds the last stage of the way down and the first of the
// way up. In one chain a micro-batch passes the first of them before the second, and its gradient
// the other way round. So rows have two chains if of every micro-batch both directions are the
// reverse of that.
bool has_two_chains(const shape& what, const places& stages, const rows_of_actions& rows,
                    std::int32_t units) {
  if (what.ranks == 0 || what.stages != 2 * what.ranks || stages != place_in_v(what.ranks, 2))
    return false;
  const turns down = turns_of(rows.back(), what.ranks - 1, units),
              up = turns_of(rows.back(), what.ranks, units);
  const auto reversed = [](std::int64_t first, std::int64_t second) {
    return first != turns::missing && second != turns::missing && first < second;
  };
  for (std::size_t i = 0; i < down.forward.size(); ++i)
    if (!reversed(up.forward[i], down.forward[i]) || !reversed(down.gradient[i], up.gradient[i]))
      return false;
  return units > 0;
}

// What is said, if it is not less than what the rows name.
std::int32_t at_least(std::int32_t stated, std::int32_t named, const char* what) {
  if (stated != 0 && stated < named)
    fail(VELO_ERR_ARGUMENT, text("text.%s", what), text("at least the %d that actions name", named),
         text("%d", stated));
  return stated == 0 ? named : stated;
}

// Every stage on the rank that first names it.
places by_first_naming(const shape& what, const rows_of_actions& rows) {
  places stages(static_cast<std::size_t>(what.ranks));
  std::vector<bool> placed(static_cast<std::size_t>(what.stages));
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    for (const action& a : rows[rank]) {
      for (const std::int32_t stage : {a.stage, a.other_stage}) {
        if (stage < 0 || placed[static_cast<std::size_t>(stage)]) continue;
        placed[static_cast<std::size_t>(stage)] = true;
        stages[rank].push_back(stage);
      }
    }
    std::sort(stages[rank].begin(), stages[rank].end());
  }
  return stages;
}

void require_places(const shape& what, const places& stages, const rows_of_actions& rows) {
  if (stages.size() != static_cast<std::size_t>(what.ranks))
    fail(VELO_ERR_ARGUMENT, "text.placement", text("%d ranks, as actions have", what.ranks),
         text("%zu", stages.size()));
  std::vector<bool> placed(static_cast<std::size_t>(what.stages));
  for (const auto& of_rank : stages) {
    for (const std::int32_t stage : of_rank) {
      if (stage < 0 || stage >= what.stages || placed[static_cast<std::size_t>(stage)])
        fail(VELO_ERR_ARGUMENT, "text.placement", text("each of %d stages once", what.stages),
             text("stage %d", stage));
      placed[static_cast<std::size_t>(stage)] = true;
    }
  }
  for (const auto& row : rows)
    for (const action& a : row)
      for (const std::int32_t stage : {a.stage, a.other_stage})
        if (stage >= 0 && !placed[static_cast<std::size_t>(stage)])
          fail(VELO_ERR_ARGUMENT, "text.placement", text("a rank for stage %d", stage), "none");
}

}  // namespace

schedule assemble(std::vector<std::vector<action>> rows, const said& beside) {
  shape what;
  what.kind = beside.kind;
  what.ranks = static_cast<std::int32_t>(rows.size());
  std::int64_t actions = 0;
  std::int32_t stages = 0, units = 0;
  for (const auto& row : rows) {
    actions += static_cast<std::int64_t>(row.size());
    for (const action& a : row) {
      stages = std::max({stages, a.stage + 1, a.other_stage + 1});
      units = std::max({units, a.microbatch + 1, a.other_microbatch + 1});
    }
  }
  what.splits = std::max(1, beside.splits);
  what.stages = at_least(beside.stages, stages, "stages");
  what.microbatches = (units + what.splits - 1) / what.splits;
  const auto require_size = [&] {
    if (std::int64_t{what.stages} * what.microbatches * what.splits >
        std::min(most_cells, 16 * actions + 1024))
      fail(VELO_ERR_ARGUMENT, "text", "actions of most stages and micro-batches up to the highest",
           text("%lld actions, stages up to %d, micro-batches up to %d",
                static_cast<long long>(actions), what.stages - 1, what.microbatches - 1));
  };
  require_size();
  places placement = beside.placement.empty() ? by_first_naming(what, rows) : beside.placement;
  require_places(what, placement, rows);
  what.chains = beside.chains != 0                             ? beside.chains
                : has_two_chains(what, placement, rows, units) ? 2
                                                               : 1;
  if (what.stages % what.chains != 0)
    fail(VELO_ERR_ARGUMENT, "text.chains", text("parts of %d stages alike", what.stages),
         text("%d", what.chains));
  what.microbatches =
      at_least(beside.microbatches, what.microbatches * what.chains, "microbatches");
  if (what.microbatches % what.chains != 0)
    fail(VELO_ERR_ARGUMENT, "text.microbatches", text("a multiple of %d, the chains", what.chains),
         text("%d", what.microbatches));
  require_size();
  return {what,
          std::move(placement),
          {std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end())}};
}

}  // namespace velo::sched
