// Plans of a tuning that pretrain (examples/pretrain) can run, as configs for its --config.
#pragma once

#include <cstddef>
#include <string>

#include "tools/velo/json.hpp"

namespace command {

// The reason why pretrain cannot run a plan of a tuning's JSON; empty: it can.
std::string pretrain_refusal(const json_t* tuning, std::size_t plan);

// The plan as a config for pretrain: JSON with a line end. It must be one that pretrain can run.
std::string pretrain_config(const json_t* tuning, std::size_t plan);

}  // namespace command
