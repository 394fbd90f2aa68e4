// The parameters and operations of a whole model: the costs of its layers on a single rank whose
// seconds are operations.
#include <limits>

#include "sched/tune/layer_costs.hpp"

namespace velo::sched::tune {
namespace {

// A layout with everything on one rank.
velo_tuning_layout uncut() {
  velo_tuning_layout one{};
  one.tp = one.pp = one.vpp = one.dp = one.cp = one.ep = one.micro_batch = 1;
  return one;
}

// A job whose seconds are operations.
job counted(const model& of) {
  job alone;
  alone.model = of;
  alone.profile.matmul_flops = alone.profile.attention_flops = 1;
  alone.profile.memory_rate = std::numeric_limits<double>::infinity();
  return alone;
}

}  // namespace

double parameters_of(const model& of) {
  job alone = counted(of);
  alone.training.sequence = 1;
  const layer_costs all = layer_costs_of(alone, uncut());
  double sum = all.embedding.parameters + all.output.parameters;
  for (std::int64_t i = 0; i < of.layers; ++i) {
    const layer_cost& layer = all.layer(of, i);
    sum += layer.parameters + layer.expert_parameters;
  }
  return sum;
}

double operations_of(const job& training_job) {
  job alone = counted(training_job.model);
  alone.training.sequence = training_job.training.sequence;
  const layer_costs all = layer_costs_of(alone, uncut());
  double forward = all.output.forward;
  for (std::int64_t i = 0; i < training_job.model.layers; ++i)
    forward += all.layer(training_job.model, i).forward;
  return 3 * forward * static_cast<double>(training_job.training.global_batch);
}

}  // namespace velo::sched::tune
