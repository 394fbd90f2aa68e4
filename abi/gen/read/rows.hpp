// The key "rows" of an operator, read only to be checked: it reaches hosts in the self-description.
#pragma once

#include "abi/gen/model.hpp"
#include "abi/gen/read/json.hpp"

namespace velo::gen {

// `at` is the operator's entry; its fields have been read.
void check_rows(const node& at, const family& home, const op& o);

}  // namespace velo::gen
