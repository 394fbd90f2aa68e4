// The table of kinds of schedules.
#include "sched/pipeline/kinds.hpp"

#include <algorithm>
#include <iterator>

#include "sched/pipeline/request.hpp"
#include "sched/schedule/kind_name.hpp"

namespace velo::sched {

// Makers, each defined in its kind's file.
schedule make_gpipe(const request& wanted);
schedule make_1f1b(const request& wanted);
schedule make_interleaved(const request& wanted);
schedule make_looped_bfs(const request& wanted);
schedule make_zbh2(const request& wanted);
schedule make_zb1p(const request& wanted);
schedule make_zbv(const request& wanted);
schedule make_zbv_greedy(const request& wanted);
schedule make_vhalf(const request& wanted);
schedule make_vmin(const request& wanted);
schedule make_1f1b_v(const request& wanted);
schedule make_dualpipe(const request& wanted);
schedule make_dualpipev(const request& wanted);
schedule make_seq1f1b(const request& wanted);
schedule make_auto(const request& wanted);
schedule make_nanopipe(const request& wanted);
schedule make_ripipe(const request& wanted);

namespace {

constexpr std::int32_t any = 1024;
constexpr auto down = stage_path::down, down_and_up = stage_path::down_and_up;
constexpr auto never = tuning::never, if_listed = tuning::if_listed,
               by_default = tuning::by_default;

// kind, maker, chunks, most chunks, traits, flags, path, tuning
constexpr kind_row rows[] = {
    {VELO_SCHEDULE_CUSTOM, nullptr, 0, 0, 0, 0, down, never},
    {VELO_SCHEDULE_GPIPE, &make_gpipe, 1, 1, whole_backward, 0, down, if_listed},
    {VELO_SCHEDULE_1F1B, &make_1f1b, 1, 1, whole_backward | in_auto, 0, down, by_default},
    {VELO_SCHEDULE_INTERLEAVED, &make_interleaved, 2, any, takes_group | whole_backward | in_auto,
     VELO_SCHEDULE_EXTRA_WARMUP | VELO_SCHEDULE_OVERLAP, down, by_default},
    {VELO_SCHEDULE_LOOPED_BFS, &make_looped_bfs, 2, any, whole_backward, 0, down, if_listed},
    {VELO_SCHEDULE_ZBH1, &make_zb1p, 1, 1, in_auto, 0, down, by_default},
    {VELO_SCHEDULE_ZBH2, &make_zbh2, 1, 1, takes_cap | stores_actions | in_auto, 0, down,
     if_listed},
    {VELO_SCHEDULE_ZB1P, &make_zb1p, 2, any, in_auto, 0, down, by_default},
    {VELO_SCHEDULE_ZBV, &make_zbv, 2, 2, in_auto, 0, down_and_up, by_default},
    {VELO_SCHEDULE_ZBV_GREEDY, &make_zbv_greedy, 2, 2, takes_cap | stores_actions | in_auto, 0,
     down_and_up, if_listed},
    {VELO_SCHEDULE_VHALF, &make_vhalf, 2, 2, stores_actions | in_auto, 0, down_and_up, by_default},
    {VELO_SCHEDULE_VMIN, &make_vmin, 2, 2, stores_actions | in_auto, 0, down_and_up, by_default},
    {VELO_SCHEDULE_1F1B_V, &make_1f1b_v, 2, 2, stores_actions | whole_backward | in_auto, 0,
     down_and_up, if_listed},
    {VELO_SCHEDULE_DUALPIPE, &make_dualpipe, 2, 2, fuses, VELO_SCHEDULE_NO_DW_DETACH,
     stage_path::both_ways, never},
    {VELO_SCHEDULE_DUALPIPEV, &make_dualpipev, 2, 2, fuses | in_auto, VELO_SCHEDULE_NO_DW_DETACH,
     down_and_up, by_default},
    {VELO_SCHEDULE_SEQ1F1B, &make_seq1f1b, 1, 1, takes_splits | whole_backward, 0, down, if_listed},
    {VELO_SCHEDULE_AUTO, &make_auto, 0, 2, takes_cap | stores_actions | weighs_stages, 0,
     stage_path::either, if_listed},
    {VELO_SCHEDULE_NANOPIPE, &make_nanopipe, 2, any, 0, VELO_SCHEDULE_SWAP, down, never},
    {VELO_SCHEDULE_RIPIPE, &make_ripipe, 2, any, stores_actions | whole_backward,
     VELO_SCHEDULE_IN_ADVANCE, down, never},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (rows[i].kind != static_cast<velo_schedule_kind>(i)) return false;
  return true;
}
static_assert(in_order() && std::size(rows) == last_schedule_kind + 1,
              "every kind of the spec has its row, in the order of numbers");

void append_tuned(tuning how, std::vector<velo_schedule_kind>& to) {
  for (const kind_row& row : rows)
    if (row.tuning == how) to.push_back(row.kind);
}

}  // namespace

const kind_row& row_of(velo_schedule_kind kind) {
  return rows[kind];
}

std::vector<velo_schedule_kind> default_tuning_kinds() {
  std::vector<velo_schedule_kind> all;
  append_tuned(by_default, all);
  return all;
}

std::vector<velo_schedule_kind> tuning_kinds() {
  std::vector<velo_schedule_kind> all = default_tuning_kinds();
  append_tuned(if_listed, all);
  return all;
}

std::vector<const kind_row*> auto_candidates() {
  std::vector<const kind_row*> all;
  for (const kind_row& row : rows)
    if (row.has(in_auto)) all.push_back(&row);
  std::stable_sort(all.begin(), all.end(),
                   [](const kind_row* a, const kind_row* b) { return a->chunks < b->chunks; });
  return all;
}

}  // namespace velo::sched
