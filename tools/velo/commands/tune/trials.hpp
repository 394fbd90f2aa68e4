// Plans of a tuning run on this machine by the host's own command, and ordered by what a step took.
#pragma once

#include <cstdint>
#include <string>

#include "tools/velo/json.hpp"

namespace command {

struct trial_settings {
  std::string command;     // pretrain with its data; it gets --config and more behind it
  std::int32_t most = 0;   // plans to run
  bool every_one = false;  // refuse a search with more of them; keep no plan that was not run
};

// Runs plans of a tuning's JSON that are marked as runnable, and puts them into the order of
// their measured steps, in seconds in the member "measured_step_seconds"; the rest follows as it
// was. Plans that failed come last, with the member "trial_failure". A line for each trial goes
// to the standard error. Throws input_error where more than the most would run, or a run is
// interrupted.
void try_plans(json_t* tuning, const trial_settings& how);

// The plans that were run as a table: measured, predicted, layout. And whether any has a time.
std::string trials_text(const json_t* tuning);
bool has_trial(const json_t* tuning);

}  // namespace command
