// Looks names up by number and numbers by name.
#include "sched/schedule/kind_name.hpp"

namespace velo::sched {

const char* name_of(velo_schedule_kind kind) {
  return kind >= 0 && kind <= last_schedule_kind ? kind_names[kind] : nullptr;
}

bool parse_kind(std::string_view name, velo_schedule_kind& into) {
  for (velo_schedule_kind kind = 0; kind <= last_schedule_kind; ++kind) {
    if (name != kind_names[kind]) continue;
    into = kind;
    return true;
  }
  return false;
}

}  // namespace velo::sched
