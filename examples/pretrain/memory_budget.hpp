// --memory_budget: the peak of a run is known before it trains, and a budget below it is refused.
//
// The trainer computes the most bytes that buffers will hold at a time. The pool needs more than
// that, for holes between buffers and parts of pages: 1 % and 512 KiB.
#pragma once

#include <cstdint>
#include <string>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/train/trainer.hpp"

namespace pretrain {

using namespace decoder;

// The bytes that the pool needs for buffers of so many bytes.
std::int64_t with_margin(std::int64_t bytes);

// The most bytes that buffers will hold, and why the budget is refused: it is too small, and the
// least one that works is named. The same on all ranks, which call keep_to_budget together.
struct budget_answer {
  std::int64_t peak = 0;
  std::string refused;  // empty: it is not
};

// Limits the run's memory to the budget of the settings, if it is not refused. Adaptive recompute
// is chosen here; an interrupt of some rank ends that with no limit and no answer.
budget_answer keep_to_budget(const memory_settings& asked, trainer& of, run_memory& memory);

}  // namespace pretrain
