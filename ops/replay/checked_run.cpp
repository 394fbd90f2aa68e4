// The run, the reference's run, and the report of a divergence.
#include "ops/replay/checked_run.hpp"

#include <string>

#include "core/tensor/check.hpp"
#include "ops/replay/call_copy.hpp"
#include "ops/replay/capsule.hpp"
#include "ops/replay/divergence.hpp"
#include "ops/replay/mixed_bits.hpp"
#include "ops/replay/term_magnitudes.hpp"

namespace velo::ops {
namespace {

using core::text;

const kernel_entry& reference_of(const operator_def& def) {
  return def.kernels->entries[def.kernels->count - 1];
}

// Runs the reference; false if it does not serve these arguments.
bool run_reference(op_id op, const void* args, core::execution& on) {
  const operator_def& def = definition_of(op);
  const kernel_entry& reference = reference_of(def);
  problem_storage problem;
  output_shapes outputs(spec_of(op), args, nullptr);
  def.infer(args, problem.bytes, outputs);
  if (def.reject(args, problem.bytes, reference) != nullptr) return false;
  core::execution plain{on.context,           on.stream, on.threads, on.scratch, reference.isa,
                        0 /* optimization */, on.caches};
  def.run(args, problem.bytes, reference.kernels, plain);
  return true;
}

// Compares a call that exceeds its bound again, with the magnitudes of the terms of its sums.
divergence compared_by_terms(op_id op, const void* before, const void* args, const void* reference,
                             const divergence& found, core::execution& on) {
  const op_spec& spec = spec_of(op);
  term_magnitudes terms(spec, before, reference);
  for (int draw = 0; draw < term_magnitudes::draws; ++draw) {
    const core::scratch_scope scope(on.scratch);
    const call_copy changed(spec, before, on.scratch, call_copy::holding::all);
    terms.change(changed.args(), draw);
    if (!run_reference(op, changed.args(), on)) return found;
    terms.add(changed.args());
  }
  const operator_def& def = definition_of(op);
  const double own = def.terms == nullptr ? 0 : def.terms(before);
  return first_divergence(spec, args, reference, terms.all(own));
}

// Compares a call with the reference's. The kernel has run, so a call that may have added to its
// outputs must not fail as one that did nothing: without memory for the terms the bound alone
// decides.
divergence compared(op_id op, const void* before, const void* args, const void* reference,
                    core::execution& on) {
  const divergence found = first_divergence(spec_of(op), args, reference);
  if (!found) return found;
  try {
    return compared_by_terms(op, before, args, reference, found, on);
  } catch (...) {
    return found;
  }
}

// The sentence about the capsule of a context's first divergence.
std::string kept_capsule(const recorded_call& call, const core::context& context) {
  const core::check_settings& how = context.configuration().now().check;
  if (how.capsules.empty()) return "no capsule: the key check.capsules names no folder";
  call_checks& checks = context.attached<call_checks>();
  if (!checks.takes_capsule())
    return "no capsule: the first divergence of this context has left one";
  try {
    return "capsule " + write_capsule(how.capsules, call, how.data);
  } catch (...) {
    checks.gives_capsule_back();
    const core::failure why = core::current_failure();
    return std::string("no capsule: ") + why.got + " " + why.cause;
  }
}

[[noreturn]] void report(const recorded_call& call, const divergence& found,
                         const core::context& context) {
  const core::tensor_path path("args.", call.spec.fields[found.field].name, found.index);
  core::fail(VELO_ERR_INTERNAL, path.member(""),
             text("%.9g within %.3g at %s, by the reference", found.reference, found.allowed,
                  found.place.buffer),
             text("%.9g by the kernel \"%s\" of %s; %lld of %lld elements diverge", found.value,
                  call.kernel.name, call.spec.name, static_cast<long long>(found.beyond),
                  static_cast<long long>(found.elements)),
             kept_capsule(call, context).c_str());
}

}  // namespace

bool call_checks::picks_next(const core::check_settings& how) noexcept {
  if (how.mode == core::checking::all) return true;
  const std::uint64_t number = calls_.fetch_add(1, std::memory_order_relaxed);
  return static_cast<double>(mixed_bits(number) >> 11) * 0x1p-53 < how.share;
}

bool can_be_checked(op_id op, const kernel_entry& kernel) {
  const operator_def& def = definition_of(op);
  return def.waits == nullptr && &kernel != &reference_of(def);
}

verdict checked_run(op_id op, const kernel_entry& kernel, const void* args,
                    const problem_storage& problem, core::execution& on) {
  const op_spec& spec = spec_of(op);
  const call_copy before(spec, args, on.scratch);
  const call_copy reference(spec, before.args(), on.scratch);
  // The reference first: it may lack memory, and the kernel may add to its outputs.
  const bool judged = is_judged(spec, before.args()) && run_reference(op, reference.args(), on) &&
                      shows_magnitudes(spec, reference.args());
  definition_of(op).run(args, problem.bytes, kernel.kernels, on);
  if (!judged) return verdict::not_judged;
  const divergence found = compared(op, before.args(), args, reference.args(), on);
  if (found) report({spec, kernel, before.args(), args, reference.args()}, found, on.context);
  return verdict::agrees;
}

}  // namespace velo::ops
