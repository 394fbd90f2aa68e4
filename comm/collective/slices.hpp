// Slices of blocks (comm/pattern/slices.hpp), as the algorithms over shared memory take them.
#pragma once

#include "comm/pattern/slices.hpp"
#include "comm/transport/shared/shared_round.hpp"
