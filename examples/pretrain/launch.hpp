// Has a run done by all of its ranks.
//
// Ranks are threads of this process (--transport local), or processes: those that mpirun, torchrun
// or srun started, or else this one starts itself again, once for each rank, before it has made
// anything, and waits for them. A rank that fails, or is killed, ends the others: they find out in
// the collective they are in, or are in next.
#pragma once

#include <functional>

#include "arguments.hpp"
#include "member.hpp"

namespace pretrain {

// Whether a launcher started this process as a rank. Its variables may still make no sense, which
// velo_group_create says.
bool is_launched();

// The exit code of rank 0, or of one that failed. Of one process the failure of a rank is thrown.
int on_all_ranks(const arguments& with, const std::function<int(member&)>& job);

}  // namespace pretrain
