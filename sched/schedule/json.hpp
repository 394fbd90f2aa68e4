// Schedules as JSON, with everything that a schedule consists of:
//
//   {"kind": "zbv", "ranks": 2, "stages": 4, "microbatches": 4, "splits": 1, "chains": 1,
//    "placement": [[0, 3], [1, 2]], "layout": "Et|t|t|tL", "noop_layers": [2],
//    "actions": [["0F0", ..], ["1F0", ..]]}
//
// Only `actions` is required. Missing sizes and a missing placement follow from the actions
// (sched/schedule/assemble.hpp); without a layout nothing is known of layers. O(text).
#pragma once

#include <string>
#include <string_view>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

// Throws PARSE naming line and column if the text is not JSON, and ARGUMENT naming the member if
// its value is invalid: text.actions[1][0].
schedule read_json(std::string_view text);

std::string write_json(const schedule& pipeline);

}  // namespace velo::sched
