// The names of kinds of schedules in texts and in the velo command, from abi/spec/sched.json. A
// name is derived from its constant: VELO_SCHEDULE_LOOPED_BFS is "looped-bfs".
#pragma once

#include <iterator>
#include <string_view>

#include "velo/schedule.h"

namespace velo::sched {

inline constexpr const char* kind_names[] = {
// by the kind's number
#include "abi/generated/schedule_kinds.inc"
};
inline constexpr velo_schedule_kind last_schedule_kind = std::size(kind_names) - 1;

const char* name_of(velo_schedule_kind kind);                      // null: no kind has the number
bool parse_kind(std::string_view name, velo_schedule_kind& into);  // false: no kind has the name

}  // namespace velo::sched
