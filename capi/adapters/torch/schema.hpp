// The overloads of an operator in torch's dispatcher, derived from its fields.
//
// - `velo::<op>`: functional. Arguments are the fields in order: tensors that are read, then
//   attributes at their defaults (an enumeration is its C number). Results are the required
//   outputs. A tensor that is read and written is a mutable argument, but where the operator has
//   the attribute `accumulate` it is a result: it is written, and `accumulate` is no argument.
// - `velo::<op>.full`: the same with every output as a result; where there are optional ones.
// - `velo::<op>.out`: every field, outputs given by the caller, no results; handles as numbers.
// An operator with a list of tensors as a result or a handle it cannot do without is .out alone.
#pragma once

#include <string>

#include "capi/adapters/entries.hpp"
#include "capi/adapters/operators.hpp"

namespace velo::adapters {

struct torch_plan {
  bool exists = false, writes_arguments = false;
  int argument_count = 0, result_count = 0;
  int arguments[max_fields];  // fields, in the order of torch's stack
  int results[max_fields];
};

torch_plan plan_of(const op_info& op, torch_overload overload);

// "rms_norm.out": the name to implement; and the whole text to define.
std::string torch_name(const op_info& op, torch_overload overload);
std::string torch_schema(const op_info& op, torch_overload overload, const torch_plan& plan);

// Whether torch hands the field over in a cell of its heap.
inline bool in_cell(const field& f) {
  return f.optional && f.kind != field_kind::handle;
}

}  // namespace velo::adapters
