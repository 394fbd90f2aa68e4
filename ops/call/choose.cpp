// The choice of a kernel: the first in the operator's list that the device, the processor, the
// configuration and the arguments allow.
#include <cstring>

#include "core/simd/detect.hpp"
#include "ops/call/call.hpp"

namespace velo::ops {

const char* refusal(op_id op, int index, const void* args, const problem_storage& problem,
                    const core::context& context) {
  const operator_def& def = definition_of(op);
  const kernel_entry& kernel = def.kernels->entries[index];
  const char* forced = context.forced_kernel(spec_of(op).name);
  if (forced != nullptr && std::strcmp(forced, kernel.name) != 0)
    return "the configuration names another kernel";
  if (context.optimization() == 0 && index + 1 != def.kernels->count)
    return "optimization level 0 runs the reference";
  if (context.optimization() < kernel.level) return "needs optimization level 2";
  if (kernel.device != context.device().type) return "runs on another kind of device";
  if (kernel.isa > context.isa())
    return "needs an instruction set that the processor lacks or the configuration forbids";
  const char* reason = def.reject(args, problem.bytes, kernel);
  if (reason == nullptr && !core::permitted(kernel.isa))
    return "needs registers that the operating system refuses this process";
  return reason;
}

int choose(op_id op, const void* args, const problem_storage& problem,
           const core::context& context) {
  const int count = definition_of(op).kernels->count;
  for (int i = 0; i < count; ++i)
    if (refusal(op, i, args, problem, context) == nullptr) return i;
  return -1;
}

}  // namespace velo::ops
