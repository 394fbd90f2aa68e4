// Ranks as processes of this host, started the way torchrun would.
//
// Each is this program again, with the same words and its place in the environment. Signals that
// end a run are passed on to all. When a rank has ended before its work was done, the others get
// SIGTERM and have 10 s to say why and end; those that are left then are killed. They end with this
// process, too, whatever ends it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace decoder {

// Returns when all have ended: 0, or the exit code of the first rank that ended otherwise. It is
// 128 + the number of the signal for one that a signal ended, which comes before those that failed.
int start_processes(std::int64_t ranks, const std::vector<std::string>& words);

}  // namespace decoder
