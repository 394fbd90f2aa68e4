// The two halves of reading the spec. `names` collects every public name, so that none is given
// twice.
#pragma once

#include <set>
#include <string>

#include "abi/gen/model.hpp"
#include "abi/gen/read/json.hpp"
#include "abi/gen/read/rules.hpp"

namespace velo::gen {

// A module's file: what its hand-written headers declare. Errors and the release stand in core.json
// alone. Types may come from modules that are read later: `check_module` sees all of them.
void read_module(const node& root, const std::string& name, spec& out,
                 std::set<std::string>& names);
void check_module(const node& root, const spec& whole, const std::set<std::string>& names);
void read_family(const std::string& file, const std::string& name, spec& out,
                 std::set<std::string>& names);

}  // namespace velo::gen
