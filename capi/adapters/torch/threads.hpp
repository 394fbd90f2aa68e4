// The contexts that calls from torch run in: on torch's own threads.
//
// One context asks torch_parallel_for for as many parts as the process has processors; torch cuts
// them into as many pieces as torch.set_num_threads set, so a change of that number is followed at
// once. torch 2.9, which lacks the function, gets a context with threads of velo's for every number
// it was set to. The host's context (velo_adapters_set_context) goes before both.
#pragma once

#include "capi/adapters/torch/abi.hpp"
#include "velo/types.h"

namespace velo::adapters {

velo_context torch_context(const torch::binding& torch);  // throws refusal

}  // namespace velo::adapters
