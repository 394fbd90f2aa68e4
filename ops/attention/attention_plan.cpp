// Shapes and sequences of both passes.
#include "ops/attention/attention_plan.hpp"

namespace velo::ops {

attention_sequence sequence_of(const attention_problem& problem, std::int64_t batch) {
  attention_sequence s{0, 0, problem.sq, problem.skv, 0, problem.causal != causal_mask::none};
  if (problem.q_ends != nullptr) {
    s.q_first = batch == 0 ? 0 : problem.q_ends[batch - 1];
    s.kv_first = batch == 0 ? 0 : problem.kv_ends[batch - 1];
    s.sq = problem.q_ends[batch] - s.q_first;
    s.skv = problem.kv_ends[batch] - s.kv_first;
  }
  if (problem.causal == causal_mask::right_down) s.shift = s.skv - s.sq;
  return s;
}

namespace {

const attention_steps& steps_for(const product_form& form, core::isa isa) {
  const kernel_entry* entry = attention_kernel_list.entries;
  while (entry->isa > isa) ++entry;
  const auto& kernels = *static_cast<const attention_kernels*>(entry->kernels);
  return form.type == element_type::f32      ? kernels.floats
         : form.type == element_type::f16    ? kernels.wide_f16
         : form.compute == element_type::f32 ? kernels.wide_bf16
                                             : kernels.pairs;
}

}  // namespace

attention_shape::attention_shape(const attention_problem& problem, core::isa isa)
    : form(problem.type, isa),
      steps(steps_for(form, isa)),
      element(element_bytes(problem.type)),
      d(round_up(problem.d, form.unit)),
      dv(round_up(problem.dv, form.unit)),
      group(problem.heads / problem.kv_heads),
      pairs(problem.batch * problem.kv_heads) {}

}  // namespace velo::ops
