// Ranks as processes of this host, started the way torchrun would.
//
// Each rank is this program again, with the same words and its rank in the environment. Signals
// that end a run are passed on to all ranks. When a rank has ended before its work was done, the
// others get SIGTERM and have 10 s to say why and end; then they are killed. They end with this
// process, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace decoder {

// Returns when all have ended: 0, or the exit code of the first rank that ended otherwise. That
// code is 128 + the signal's number for a rank that a signal ended, and takes precedence over
// failures.
int start_processes(std::int64_t ranks, const std::vector<std::string>& words);

}  // namespace decoder
