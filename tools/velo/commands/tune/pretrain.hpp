// Plans of a tuning that pretrain (examples/pretrain) can run, as configs for its --config.
//
// Whether it can is decided here by the plan's members, not by pretrain, which velo does not link.
// tests/examples/decoder/configuration/tuned_plans_test.cpp holds the answer to pretrain's own
// checks of the config, for every plan of a set of searches.
#pragma once

#include <cstddef>
#include <string>

#include "tools/velo/json.hpp"

namespace command {

// The reason why pretrain cannot run a plan of a tuning's JSON; empty: it can.
std::string pretrain_refusal(const json_t* tuning, std::size_t plan);

// Sets the members "runnable" and, where that is false, "not_runnable", the reason, of every plan.
void mark_plans(json_t* tuning);

// The plan as a config for pretrain: JSON with a line end. If pretrain cannot run the plan, it
// refuses the config, or the config lacks what pretrain has no setting for.
std::string pretrain_config(const json_t* tuning, std::size_t plan);

}  // namespace command
