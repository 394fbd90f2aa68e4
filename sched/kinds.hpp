// What kinds of schedules are called, in texts and by the velo command.
#pragma once

#include <string_view>

#include "velo/schedule.h"

namespace velo::sched {

const char* name_of(velo_schedule_kind kind);                      // null: there is no such kind
bool parse_kind(std::string_view name, velo_schedule_kind& into);  // false: none is called so

}  // namespace velo::sched
