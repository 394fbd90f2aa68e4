// One table.
#include "sched/kinds.hpp"

#include <iterator>

namespace velo::sched {
namespace {

// By number.
constexpr const char* names[] = {"custom",  "gpipe", "1f1b",     "interleaved", "looped-bfs",
                                 "zbh1",    "zbh2",  "zb1p",     "zbv",         "zbv-greedy",
                                 "vhalf",   "vmin",  "1f1b-v",   "dualpipe",    "dualpipev",
                                 "seq1f1b", "auto",  "nanopipe", "ripipe"};
static_assert(std::size(names) == VELO_SCHEDULE_RIPIPE + 1);

}  // namespace

const char* name_of(velo_schedule_kind kind) {
  return kind >= 0 && kind <= VELO_SCHEDULE_RIPIPE ? names[kind] : nullptr;
}

bool parse_kind(std::string_view name, velo_schedule_kind& into) {
  for (velo_schedule_kind kind = 0; kind <= VELO_SCHEDULE_RIPIPE; ++kind) {
    if (name != names[kind]) continue;
    into = kind;
    return true;
  }
  return false;
}

}  // namespace velo::sched
