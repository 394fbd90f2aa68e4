// Runs a job on all ranks of a run.
//
// Ranks are threads of this process (--transport local), or processes: those that mpirun, torchrun
// or srun started, or else this one starts itself again, once for each rank, before it has made
// anything, and waits for them. A rank that fails, or is killed, ends the others: they find out in
// the collective they are in, or are in next.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "examples/decoder/ranks/member.hpp"

namespace decoder {

// Whether a launcher started this process as a rank. Its variables may still make no sense, which
// velo_group_create says.
bool is_launched();

// The same, or this is Slurm's batch script of several tasks, which `run` does not ask to start
// ranks: velo_group_create then says what is wrong. Such ranks cannot be threads.
bool is_launched(const settings& run);

// Runs `job` on every rank and returns the exit code of rank 0, or of one that failed. Of one
// process the failure of a rank is thrown. `words` is the command line with which ranks that are
// processes are started. `require_ranks`, if given, refuses the number of ranks of a launcher.
int on_all_ranks(const settings& run, const std::vector<std::string>& words,
                 const std::function<int(member&)>& job,
                 const std::function<void(std::int64_t)>& require_ranks = {});

}  // namespace decoder
