// What the pictures of a timeline have in common: numbers, names, what is drawn of each kind of
// action, how much of a schedule can be drawn.
#pragma once

#include <string>

#include "sched/simulate/timeline.hpp"
#include "velo/timeline.h"

namespace velo::sched {

// As few digits as say a number exactly.
void append_number(std::string& to, double value);

struct look {
  velo_action_kind kind;
  const char* name;
  const char* meaning;
  std::uint32_t color;  // 0xRRGGBB
};
// Of an FB: that of its F.
const look& look_of(velo_action_kind kind);

// The chunk of its rank that each stage is.
std::vector<std::int32_t> chunks_of(const schedule& what);

// 3, or 3.1 for the split 1 of micro-batch 3; nothing for no unit.
std::string unit_text(const shape& what, std::int32_t unit);

// "interleaved: 4 ranks, 8 stages, 8 micro-batches; makespan 28.5, bubble 15.8 %"
std::string title_of(const timeline& of);

// The part of the makespan in which a rank does nothing, in percent.
double idle_percent(const timeline& of, std::int32_t rank);

// Times of a measured timeline are in nanoseconds, shown in milliseconds; simulated ones are in the
// unit of the costs.
double shown(const timeline& of, std::int64_t ticks);

// Whether a text has critical path and memory, too: where there are not more actions than a picture
// has.
bool has_details(const timeline& of);
// Whether costs said what weights, gradients, optimizer states or a message take.
bool has_sizes(const timeline& of);

// "start", "rank", "message", "copy", "collective"
const char* cause_name(velo_path_cause cause);

// Throws ARGUMENT if there are more actions than a picture is made of.
void require_drawable(const timeline& of);

}  // namespace velo::sched
