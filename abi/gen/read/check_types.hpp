// Every C type the spec names must be one that the public headers have.
#pragma once

#include "abi/gen/model.hpp"
#include "abi/gen/read/json.hpp"

namespace velo::gen {

// `root` is the document of a module, `s` the whole spec; messages point into it.
void check_types(const node& root, const spec& s);

}  // namespace velo::gen
