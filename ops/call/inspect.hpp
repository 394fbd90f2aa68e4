// Information about operators: the self-description as JSON, the shapes of their outputs, and which
// kernel would run. For set-up and tools; nothing here is hot.
#pragma once

#include <string>

#include "ops/call/call.hpp"

namespace velo::ops {

std::string describe_library();  // one JSON document: functions, structs, operators, errors
std::string describe_op(op_id op);

// Shapes of the outputs these inputs produce, in field order. Data pointers may be null, outputs
// absent. `begin(count)` is called first, then `receive(index, field, shape)` for each.
template <class Begin, class Receive>
void infer_outputs(op_id op, const args_block& block, const core::context& context, Begin&& begin,
                   Receive&& receive) {
  output_shape shapes[max_fields];
  problem_storage problem;
  check(op, &block, context, purpose::shapes_only, problem, shapes);
  const op_spec& spec = spec_of(op);
  std::int64_t count = 0;
  for (int i = 0; i < spec.field_count; ++i) count += shapes[i].set ? 1 : 0;
  begin(count);
  count = 0;
  for (int i = 0; i < spec.field_count; ++i) {
    if (shapes[i].set) receive(count++, spec.fields[i], shapes[i]);
  }
}

// JSON array in order of preference: name, isa, chosen and the reason if not; the chosen one has
// the cost of the call.
std::string explain(op_id op, const args_block& block, const core::context& context);

}  // namespace velo::ops
