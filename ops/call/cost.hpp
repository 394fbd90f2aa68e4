// The cost of a call before it runs, and the time that the machine's limits allow.
#pragma once

#include "ops/call/call.hpp"
#include "ops/operator/cost.hpp"

namespace velo::ops {

// Checks the call as velo_op_infer does: data may be null, outputs absent.
op_cost cost_of(op_id op, const args_block& block, const core::context& context);

// The cost of a call that was checked. shapes: the outputs' shapes, one a field, or nullptr where
// every output is given.
op_cost cost_of_checked(op_id op, const void* args, const problem_storage& problem,
                        const output_shape* shapes);

// The least seconds at the limits of the configuration: of the products of what the mask leaves, or
// of the bytes, whichever takes longer. 0 where a limit that the call needs is not set.
double least_seconds(const op_cost& cost, const core::context& context);

}  // namespace velo::ops
