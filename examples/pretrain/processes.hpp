// Ranks as processes of this host, started the way torchrun would.
//
// Each is this program again, with the same words and its place in the environment. Signals that end
// a run are passed on to all; when one rank has failed, the others have some seconds to say why and
// end, and are killed then. They end with this process, too, whatever ends it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pretrain {

// Returns when all have ended: the highest exit code of those that failed (128 and more: by a signal),
// else that of rank 0.
int start_processes(std::int64_t ranks, const std::vector<std::string>& words);

}  // namespace pretrain
