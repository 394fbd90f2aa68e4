// The source files of an operator, for the messages of tests that name no operator themselves: the
// author of a new one that breaks a rule learns which file to edit.
#pragma once

#include <string>

#include "ops/operator/registry.hpp"

namespace velo::testing {

// The source that defines `<name>_operator`, from the root of the tree; empty when none does.
std::string source_of(const ops::op_spec& spec);

// "add: edit ops/elementwise/add.cpp or what it includes; what it promises is in
// abi/spec/ops/elementwise.json"
std::string where_to_edit(const ops::op_spec& spec);
std::string where_to_edit(const std::string& op);

}  // namespace velo::testing
