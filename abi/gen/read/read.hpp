// From the files of abi/spec to a checked model. Throws spec_error with file and line for the first
// thing that is wrong.
#pragma once

#include <string>

#include "abi/gen/model.hpp"

namespace velo::gen {

// `folder` holds core.json and a file for each other module, ops.json, ops/<family>.json and
// slots.json. A function that slots.json lacks is refused, or comes last.
enum class missing_slots { refuse, append };
spec read_spec(const std::string& folder, missing_slots missing = missing_slots::refuse);

// slots.json with the functions of `s`.
std::string slots_text(const spec& s);

}  // namespace velo::gen
