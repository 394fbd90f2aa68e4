// Failures in the words of who typed the command: fields, settings and operators, not the C
// functions and arguments that the library's records name.
#pragma once

#include <string>
#include <utility>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/json.hpp"

namespace command {

// A record as a sentence: "gamma, its shape: expected [64], got [63]".
std::string sentence_of(const velo::error& failure);

// The document of velo_op_describe; throws input_error when there is no such operator, and names
// the closest.
json describe_operator(const std::string& name);

// Applies --set key=value..; throws input_error for the first that is refused.
void configure(velo::context& context,
               const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace command
