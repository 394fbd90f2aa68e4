// The lines that a run prints before its first step and after its last.
#pragma once

#include <cstdint>
#include <string>

#include "examples/decoder/data/corpus.hpp"
#include "examples/decoder/report/console.hpp"
#include "examples/decoder/report/machine_rates.hpp"
#include "examples/decoder/report/progress.hpp"
#include "examples/decoder/train/trainer.hpp"

namespace pretrain {

using namespace decoder;

// "3.3 M parameters"
std::string parameters_of(const trainer& of);

// The model, the data, the machine and the ranks. `peak` is the most bytes that buffers will hold,
// 0 where it was not computed; `machine` was measured if the settings say so.
void introduce(console& to, const settings& values, const corpus& text, const trainer& of,
               const member& rank, std::int64_t peak, const machine_rates& machine);

// The arithmetic of a step, and its time at the limits of the machine, where these were measured.
step_work work_of_step(const settings& values, const machine_rates& machine);

// The memory that the run took, its plan, and what it swapped.
void summarize_memory(console& to, const run_memory& memory, const trainer& of, std::int64_t peak);

}  // namespace pretrain
