// The problem of a call of fusion_attention, for the operators that are other interfaces to it.
#pragma once

#include "ops/attention/attention_options.hpp"
#include "ops/attention/engine/attention_kernels.hpp"
#include "ops/operator/cost.hpp"

namespace velo::ops {

// Checks and describes the inputs; strides of outputs follow later.
attention_problem describe_attention(const velo_fusion_attention_args& a);
// The problem with what belongs to the args, for the length of a call.
attention_problem placed_attention(const velo_fusion_attention_args& a,
                                   const attention_problem& problem, attention_terms& terms);
// Adds so many products a score.
void add_attention_products(const velo_fusion_attention_args& a, const attention_problem& problem,
                            double products, op_cost& cost);
// Why a kernel of the engine does not serve a problem, or nullptr.
const char* attention_refusal(const attention_problem& p, const kernel_entry& kernel);

}  // namespace velo::ops
