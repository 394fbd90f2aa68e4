// From the files of abi/spec to a checked model. Throws spec_error with file and line for the first
// thing that is wrong.
#pragma once

#include <string>

#include "abi/gen/model.hpp"

namespace velo::gen {

// `folder` holds core.json and a file for each other module, ops.json, ops/<family>.json and
// slots.json.
spec read_spec(const std::string& folder);

}  // namespace velo::gen
