// The forwards that a rank may do before it knows whether the last optimizer step was right.
//
// These are the forwards at the beginning of its row whose inputs come from such forwards of other
// ranks, so every rank can do them whatever the step's result. After them a rank waits for the
// result, once it has received everything that others send before they wait. No message of a void
// forward is then under way, so void results can be dropped, also on links with blocking sends.
// Cost: one pass over all rows, and several over their beginnings.
#pragma once

#include <vector>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

struct ahead {
  struct input {
    std::int32_t stage, unit;
  };
  std::int64_t cut = 0;         // the number of actions of the row
  std::vector<input> arriving;  // inputs of later actions that others send ahead, in row order
};

ahead ahead_of(const schedule& pipeline, std::int32_t rank);

}  // namespace velo::sched
