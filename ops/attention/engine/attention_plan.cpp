// Shapes and sequences of both passes.
#include "ops/attention/engine/attention_plan.hpp"

namespace velo::ops {

attention_sequence sequence_of(const attention_problem& problem, std::int64_t batch) {
  std::int64_t q_first = 0, kv_first = 0, sq = problem.sq, skv = problem.skv;
  if (problem.q_ends != nullptr) {
    q_first = batch == 0 ? 0 : problem.q_ends[batch - 1];
    kv_first = batch == 0 ? 0 : problem.kv_ends[batch - 1];
    sq = problem.q_ends[batch] - q_first;
    skv = problem.kv_ends[batch] - kv_first;
  }
  const attention_window& window = batch == problem.banded ? problem.band : problem.window;
  const std::int64_t prefix = problem.prefixes == nullptr ? 0 : problem.prefixes[batch];
  return {q_first, kv_first, sq, skv, visible_keys(window, sq, skv, prefix)};
}

const attention_kernels& attention_kernels_of(core::isa isa) {
  const kernel_entry* entry = attention_kernel_list.entries;
  while (entry->isa > isa) ++entry;
  return *static_cast<const attention_kernels*>(entry->kernels);
}

namespace {

const attention_steps& steps_for(const product_form& form, core::isa isa) {
  const attention_kernels& kernels = attention_kernels_of(isa);
  return form.type == element_type::f32      ? kernels.floats
         : form.type == element_type::f16    ? kernels.wide_f16
         : form.compute == element_type::f32 ? kernels.wide_bf16
                                             : kernels.pairs;
}

}  // namespace

attention_shape::attention_shape(const attention_problem& problem, core::isa isa)
    : form(problem.type, isa),
      steps(steps_for(form, isa)),
      results(problem.float_results ? attention_kernels_of(isa).floats : steps),
      element(element_bytes(problem.type)),
      result(problem.float_results ? std::int64_t{sizeof(float)} : element),
      key_results(problem.float_keys ? attention_kernels_of(isa).floats : results),
      key_result(problem.float_keys ? std::int64_t{sizeof(float)} : result),
      d(round_up(problem.d, form.unit)),
      dv(round_up(problem.dv, form.unit)),
      group(problem.heads / problem.kv_heads),
      pairs(problem.batch * problem.kv_heads) {}

}  // namespace velo::ops
