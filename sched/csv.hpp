// Schedules as rows of text, one a rank, in order: PyTorch's form.
//
// A field is an action (sched/action.hpp) or empty, which PyTorch writes where a rank idles and which
// is passed over. Lines end in LF or CRLF. What makes no sense is refused as VELO_ERR_ARGUMENT with
// line and column, counted from 1 in lines and bytes. O(text).
#pragma once

#include <string>
#include <string_view>

#include "sched/schedule.hpp"

namespace velo::sched {

// Stages and micro-batches are those named, up to the highest; a stage is on the rank that first
// names it. Stages down the ranks and up again of which the last rank does the one on the way up first
// are two chains, DualPipe's. Numbers so high that most stages would have nothing to do are refused.
schedule read_csv(std::string_view text);

std::string write_csv(const schedule& what);

}  // namespace velo::sched
