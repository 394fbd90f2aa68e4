// Runs a job on all ranks of a run.
//
// Ranks are threads of this process (--transport local), or processes that mpirun, torchrun or srun
// started. Else this process starts itself once for each rank, before it has made anything, and
// waits for them. A rank that fails or is killed ends the others in their current or next
// collective.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "examples/decoder/ranks/member.hpp"

namespace decoder {

// Whether a launcher started this process as a rank. velo_group_create checks the launcher's
// variables.
bool is_launched();

// Also true in Slurm's batch script of several tasks, unless `run` asks to start ranks here:
// velo_group_create then explains what is wrong. Such ranks cannot be threads.
bool is_launched(const settings& run);

// Runs `job` on every rank and returns the exit code of rank 0, or of a rank that failed. In one
// process a rank's failure is thrown. Ranks that are processes are started with the command line
// `words`. `require_ranks`, if given, refuses the number of ranks, which may be a launcher's.
int on_all_ranks(const settings& run, const std::vector<std::string>& words,
                 const std::function<int(member&)>& job,
                 const std::function<void(std::int64_t)>& require_ranks = {});

}  // namespace decoder
