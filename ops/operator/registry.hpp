// All operators: spec and definition side by side, by number or by name. Constant tables; lookup by
// name is a linear search over about forty strings, for set-up and tools.
#pragma once

#include "ops/operator/definition.hpp"
#include "ops/operator/spec.hpp"

namespace velo::ops {

enum class op_id : int {
#include "abi/generated/op_ids.inc"
};

int op_count();
const op_spec& spec_of(op_id op);
const operator_def& definition_of(op_id op);
const op_spec* find_spec(const char* name);  // by name or alias; nullptr when there is none
bool find_op(const char* name, op_id& op);

// The spec's error bound for outputs of a dtype; exact for integers. mixed: some floating tensor of
// the call is narrower than float32.
error_bound bound_of(const op_spec& spec, velo_dtype output, bool mixed);

}  // namespace velo::ops
