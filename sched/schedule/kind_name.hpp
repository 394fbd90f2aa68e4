// What kinds of schedules are called, in texts and by the velo command.
#pragma once

#include <iterator>
#include <string_view>

#include "velo/schedule.h"

namespace velo::sched {

// Names of kinds; the index is the kind's number.
inline constexpr const char* kind_names[] = {
    "custom",    "gpipe",   "1f1b",       "interleaved", "looped-bfs", "zbh1",   "zbh2",
    "zb1p",      "zbv",     "zbv-greedy", "vhalf",       "vmin",       "1f1b-v", "dualpipe",
    "dualpipev", "seq1f1b", "auto",       "nanopipe",    "ripipe"};
inline constexpr velo_schedule_kind last_schedule_kind = std::size(kind_names) - 1;

const char* name_of(velo_schedule_kind kind);                      // null: there is no such kind
bool parse_kind(std::string_view name, velo_schedule_kind& into);  // false: none is called so

}  // namespace velo::sched
