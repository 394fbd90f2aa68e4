// Check mode: the reference on copies, then a call's kernel, and a failure if they disagree.
//
// The keys check.mode and check.share choose the calls. A checked call copies its outputs twice,
// runs the operator's plain reference, and compares element by element (divergence.hpp), so it
// takes as long as the reference, which may be a hundred times the kernel's time. Where elements
// differ by more than the bound, the reference runs eight times more, on copies of all tensors,
// since terms that cancel may explain it (term_magnitudes.hpp). A divergence is a failure INTERNAL
// of the call, whose outputs hold the kernel's results; the first of a context leaves a capsule
// (capsule.hpp) in the folder of check.capsules. Not checked: calls that the reference itself
// serves, that wait for other ranks, of foreign kernels, and those whose inputs lie outside the
// magnitudes of the operator's bound.
#pragma once

#include <atomic>

#include "core/context.hpp"
#include "ops/operator/args_block.hpp"
#include "ops/operator/registry.hpp"

namespace velo::ops {

// The checks of a context. Thread-safe.
class call_checks {
 public:
  // Whether the next call is to be checked. By its number alone, so that a repeated run checks the
  // same calls.
  bool picks_next(const core::check_settings& how) noexcept;
  // Whether a divergence may leave the context's capsule, which it gives back where it could not.
  bool takes_capsule() noexcept { return !capsule_.exchange(true); }
  void gives_capsule_back() noexcept { capsule_ = false; }

 private:
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<bool> capsule_{false};
};

bool can_be_checked(op_id op, const kernel_entry& kernel);

enum class verdict { agrees, not_judged };

// Runs the kernel, like operator_def::run, and checks it. Throws MEMORY before the kernel runs,
// INTERNAL for a divergence.
verdict checked_run(op_id op, const kernel_entry& kernel, const void* args,
                    const problem_storage& problem, core::execution& on);

}  // namespace velo::ops
