// A profile for velo tune of this machine: what a rank of one thread reaches here with velo's own
// operators, in a layer of a job that is shrunk until it takes seconds.
#pragma once

#include <string>

namespace command {

// The profile as JSON. config: the text of a job, whose widths and element type are shrunk; file:
// its name, for messages. Progress goes to the standard error, a line a part. Takes about eight
// seconds. Throws input_error.
std::string measured_profile(const std::string& config, const std::string& file);

}  // namespace command
