// --memory_budget: the peak of a run is known before it trains, and a budget below it is refused.
//
// The trainer computes the most bytes that buffers will hold at a time. The pool needs more than
// that, for holes between buffers and parts of pages: 1 % and 512 KiB.
#pragma once

#include <cstdint>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/train/trainer.hpp"

namespace pretrain {

using namespace decoder;

// The bytes that the pool needs for buffers of so many bytes.
std::int64_t with_margin(std::int64_t bytes);

// Limits the run's memory to the budget of the settings and returns the most bytes that buffers
// will hold; 0 without a budget. Adaptive recompute is chosen here. A budget that is too small is
// refused with the least one that works.
std::int64_t keep_to_budget(const configuration& config, trainer& of, run_memory& memory);

}  // namespace pretrain
