// Schedules as rows of text, one for each rank, in PyTorch's form.
//
// A field is an action (sched/schedule/action.hpp), or empty: PyTorch writes empty fields where a
// rank idles, and they are skipped. Lines end in LF or CRLF. An invalid field is refused as
// VELO_ERR_ARGUMENT with line and column, counted from 1 in lines and bytes. O(text).
#pragma once

#include <string>
#include <string_view>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

// Sizes and placement follow from the rows (sched/schedule/assemble.hpp).
schedule read_csv(std::string_view text);

std::string write_csv(const schedule& pipeline);

}  // namespace velo::sched
