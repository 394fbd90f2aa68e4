// Shared by the pictures of a timeline: numbers, names, the look of each kind of action, the limit
// of what can be drawn.
#pragma once

#include <string>

#include "core/text/json_writer.hpp"
#include "sched/simulate/timeline.hpp"
#include "velo/timeline.h"

namespace velo::sched {

using core::append_number;

struct look {
  velo_action_kind kind;
  const char* name;
  const char* meaning;
  std::uint32_t color;  // 0xRRGGBB
};
// The look of a kind of action; an FB's is that of its F.
const look& look_of(velo_action_kind kind);

// The chunk number of each stage on its rank.
std::vector<std::int32_t> chunks_of(const schedule& pipeline);

// The text of a unit: 3, or 3.1 for split 1 of micro-batch 3; empty for no unit.
std::string unit_text(const shape& sizes, std::int32_t unit);

// "interleaved: 4 ranks, 8 stages, 8 micro-batches; makespan 28.5, bubble 15.8 %"
std::string title_of(const timeline& of);

// The share of the makespan in which a rank is idle, in percent.
double idle_percent(const timeline& of, std::int32_t rank);

// Converts ticks to the shown unit: milliseconds for measured timelines, whose ticks are
// nanoseconds, else the unit of the costs.
double shown(const timeline& of, std::int64_t ticks);

// Whether a text includes critical path and memory: if there are no more actions than a picture
// has.
bool has_details(const timeline& of);
// Whether the costs state sizes of weights, gradients, optimizer states or messages.
bool has_sizes(const timeline& of);

// "start", "rank", "message", "copy", "collective"
const char* cause_name(velo_path_cause cause);

// Throws ARGUMENT if there are more actions than a picture can have.
void require_drawable(const timeline& of);

}  // namespace velo::sched
