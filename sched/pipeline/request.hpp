// A request: a velo_schedule_desc after the checks that all kinds share (counts from 1, sizes that
// fit). The generator of a kind checks the kind's own rules.
#pragma once

#include <memory>

#include "sched/schedule/ticks.hpp"

namespace velo::sched {

// A velo_schedule_desc with its defaults filled in.
struct request {
  velo_schedule_kind kind = VELO_SCHEDULE_CUSTOM;
  std::int32_t ranks = 0;         // P
  std::int32_t microbatches = 0;  // M
  std::int32_t chunks = 1;        // V
  std::int32_t group = 0;         // N
  std::int32_t splits = 1;        // S
  bool extra_warmup = false;
  bool detach = true;       // W are delayed at the end of DualPipe(V)
  bool overlap = false;     // FB in an interleaved schedule
  bool in_advance = false;  // ripipe
  bool swap = false;        // nano-pipe
  double cap = 0;           // most activations, in micro-batches of a whole rank; 0: the kind's own
  bool updates = false;     // rows end with OPTIMIZER
  sched::costs costs;
  std::shared_ptr<const layout> layers;  // of the model; null: unknown

  // The cap in activations of one stage.
  std::int32_t room_or(std::int32_t otherwise) const {
    return cap == 0 ? otherwise : static_cast<std::int32_t>(cap * chunks);
  }
};

// The shape of the requested schedule.
shape shape_of(const request& wanted);

// Reads a desc whose costs were already read and checked. Throws ARGUMENT naming the field.
request read_request(const velo_schedule_desc& desc, const costs& given);

}  // namespace velo::sched
