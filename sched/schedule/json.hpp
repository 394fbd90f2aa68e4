// Schedules as JSON: all that there is to say of one.
//
//   {"kind": "zbv", "ranks": 2, "stages": 4, "microbatches": 4, "splits": 1, "chains": 1,
//    "placement": [[0, 3], [1, 2]], "layout": "Et|t|t|tL", "noop_layers": [2],
//    "actions": [["0F0", ..], ["1F0", ..]]}
//
// `actions` alone must be there; what else is left out follows from it as for rows of text
// (sched/schedule/assemble.hpp), and nothing is known of layers. O(text).
#pragma once

#include <string>
#include <string_view>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

// Throws PARSE naming line and column where the text is no JSON, ARGUMENT naming the member where
// it makes no sense: text.actions[1][0].
schedule read_json(std::string_view text);

std::string write_json(const schedule& what);

}  // namespace velo::sched
