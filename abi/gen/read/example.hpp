// The examples of an operator, read and held against its fields.
#pragma once

#include "abi/gen/model.hpp"
#include "abi/gen/read/json.hpp"

namespace velo::gen {

// `at` is the operator's entry; its fields have been read.
void read_examples(const node& at, const family& home, op& o);

}  // namespace velo::gen
