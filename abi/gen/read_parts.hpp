// The two halves of reading the spec. `names` collects every public name, so that none is given
// twice.
#pragma once

#include <set>
#include <string>

#include "abi/gen/json.hpp"
#include "abi/gen/model.hpp"
#include "abi/gen/rules.hpp"

namespace velo::gen {

void read_core(const std::string& file, spec& out, std::set<std::string>& names);
void read_family(const std::string& file, const std::string& name, spec& out,
                 std::set<std::string>& names);

}  // namespace velo::gen
