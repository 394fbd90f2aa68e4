// What operators can tell about themselves: the self-description as JSON, the shapes of their
// outputs, and which kernel would run. Set-up and tools; nothing here is hot.
#pragma once

#include <string>

#include "ops/call/call.hpp"

namespace velo::ops {

std::string describe_library();  // one JSON document: functions, structs, operators, errors
std::string describe_op(op_id op);

// Shapes of the outputs these inputs produce, in field order. Data pointers may be null, outputs
// absent. Returns how many there are; `receive(field, shape)` is called for each.
template <class Receive>
std::int64_t infer_outputs(op_id op, const args_block& block, const core::context& context,
                           Receive&& receive) {
  output_shape shapes[max_fields];
  problem_storage problem;
  check(op, &block, context, purpose::shapes_only, problem, shapes);
  std::int64_t count = 0;
  for (int i = 0; i < spec_of(op).field_count; ++i) {
    if (!shapes[i].set) continue;
    receive(count++, spec_of(op).fields[i], shapes[i]);
  }
  return count;
}

// JSON array, in order of preference: name, isa, chosen, and why not (null for the chosen one).
std::string explain(op_id op, const args_block& block, const core::context& context);

}  // namespace velo::ops
