// Bytes from the field table, the operator's own part, and the comparison with the limits.
#include "ops/call/cost.hpp"

#include <algorithm>

namespace velo::ops {
namespace {

double output_bytes(const output_shape& shape) {
  return static_cast<double>(bytes_of(shape.dtype, product(shape.sizes, shape.rank)));
}

double list_bytes(const velo_tensors& list) {
  double sum = 0;
  for (std::int64_t i = 0; i < list.count; ++i) sum += bytes_of(&list.data[i]);
  return sum;
}

// The bytes of a field that holds tensors. A required output counts even where it is left out.
double field_bytes(const op_spec& spec, int i, const args_block::field_value& value,
                   const output_shape* shapes) {
  const field& f = spec.fields[i];
  if (value.pointer == nullptr) {
    const bool missing = shapes != nullptr && f.output && !f.optional && shapes[i].set;
    return missing ? output_bytes(shapes[i]) : 0;
  }
  return f.kind == field_kind::tensor ? bytes_of(value.tensor) : list_bytes(*value.tensors);
}

}  // namespace

op_cost cost_of_checked(op_id op, const void* args, const problem_storage& problem,
                        const output_shape* shapes) {
  const op_spec& spec = spec_of(op);
  op_cost cost;
  for (int i = 0; i < spec.field_count; ++i) {
    const field& f = spec.fields[i];
    if (f.kind != field_kind::tensor && f.kind != field_kind::tensors) continue;
    const double bytes = field_bytes(spec, i, values_of(args)[i], shapes);
    if (f.read) cost.bytes_read += bytes;
    if (f.output) cost.bytes_written += bytes;
  }
  const operator_def& def = definition_of(op);
  if (def.cost != nullptr) def.cost(args, problem.bytes, cost);
  return cost;
}

op_cost cost_of(op_id op, const args_block& block, const core::context& context) {
  output_shape shapes[max_fields];
  problem_storage problem;
  check(op, &block, context, purpose::shapes_only, problem, shapes);
  return cost_of_checked(op, &block, problem, shapes);
}

double least_seconds(const op_cost& cost, const core::context& context) {
  const core::machine_limits& limits = context.configuration().now().limits;
  const double gflops = cost.products == i8     ? 0  // no key says it
                        : cost.products == bf16 ? limits.bf16_gflops
                                                : limits.f32_gflops;
  const double gbytes = cost.bytes_written == 0 ? limits.read_gbytes : limits.copy_gbytes;
  if ((cost.flops_visible > 0 && gflops == 0) || gbytes == 0) return 0;
  const double moving = (cost.bytes_read + cost.bytes_written) / (gbytes * 1e9);
  return cost.flops_visible > 0 ? std::max(cost.flops_visible / (gflops * 1e9), moving) : moving;
}

}  // namespace velo::ops
