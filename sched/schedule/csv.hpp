// Schedules as rows of text, one a rank, in order: PyTorch's form.
//
// A field is an action (sched/schedule/action.hpp) or empty, which PyTorch writes where a rank
// idles and which is passed over. Lines end in LF or CRLF. What makes no sense is refused as
// VELO_ERR_ARGUMENT with line and column, counted from 1 in lines and bytes. O(text).
#pragma once

#include <string>
#include <string_view>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

// What rows leave out follows from them (sched/schedule/assemble.hpp).
schedule read_csv(std::string_view text);

std::string write_csv(const schedule& what);

}  // namespace velo::sched
