// Time as whole numbers, so that simulated times are exact and can be compared.
//
// A cost stands for the decimal number that it prints as: 0.1 is a tenth. If the costs have few
// digits, then all costs, divided by the stages of a rank, are whole multiples of a tick, 1 /
// `unit` of their unit. The sums of a simulation are then exact, and a result is the double nearest
// to the true value. If the digits need more than 62 bits, costs are rounded to a tick with which
// the longest simulation fits: at worst to 2^-30 of the largest cost, with 2^30 actions. Shares of
// stages and parts of activations become whole numbers in the same way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/index.hpp"
#include "sched/schedule/schedule.hpp"

namespace velo::sched {

// The memory of a P-th of the model, in any unit; activations and a message are those of one
// micro-batch.
struct memory_sizes {
  double weights = 0, gradients = 0, optimizer = 0, activations = 1, message = 0;
};

// The duration of actions of a whole rank, for one micro-batch, in any unit.
struct costs {
  double forward = 1, input = 1, weight = 1;
  double fused = -1;  // of an FB; below 0: the sum of its parts
  double latency = 0;
  double transfer = 0;    // of a message; the next one waits meanwhile
  double recompute = -1;  // below 0: forward
  double offload = 0, reload = 0;
  double gather = 0, reduce = 0, optimizer = 0;  // of a whole rank, once
  double pending = 1, checkpoint = 0;            // parts of activations: behind I, before RECOMPUTE
  double embedding = 0, predictor = 1, loss = 0;  // in layers
  std::vector<double> shares = {};                // of the model, by stage; empty: all alike
  memory_sizes sizes = {};
};

// Adds the shares that layers imply, if none are given and the schedule has layers. Throws ARGUMENT
// if there are not as many shares as stages, or if all are 0. argument: the name of the costs.
costs with_shares(costs given, const shape& sizes, const layout* layers, const char* argument);

// The costs of one stage and one unit, where stages differ in more than their size. hidden: the
// most that an FB with this stage saves.
struct stage_ticks {
  std::int64_t forward, input, weight, hidden;
};

// The costs of one stage and one unit of a schedule, in ticks.
struct ticks {
  std::int64_t forward = 0, input = 0, weight = 0, fused = 0, latency = 0;
  std::int64_t transfer = 0, recompute = 0, offload = 0, reload = 0;
  std::int64_t gather = 0, reduce = 0, optimizer = 0;  // of one stage
  bool fused_is_sum = false;
  std::vector<std::int64_t> shares;  // by stage, factors of all costs but messages; empty: 1
  // Costs of each stage that replace forward to fused, for schedules of F, I, W, B and FB alone. If
  // empty, the shares apply.
  std::vector<stage_ticks> stages;
  // Activations of a stage of share 1: all, those kept behind I, those kept before RECOMPUTE.
  std::int64_t full = 1, pending = 1, checkpoint = 0;
  double unit = 1;  // ticks in one of the costs' units; whole or a power of two

  double value(std::int64_t count) const;  // in the costs' unit
  std::int64_t share(std::int32_t stage) const {
    return shares.empty() ? 1 : shares[core::at(stage)];
  }
  const stage_ticks& at(std::int32_t stage) const { return stages[core::at(stage)]; }
  std::int64_t of_forward(std::int32_t stage) const {
    return stages.empty() ? forward * share(stage) : at(stage).forward;
  }
  std::int64_t of_input(std::int32_t stage) const {
    return stages.empty() ? input * share(stage) : at(stage).input;
  }
  std::int64_t of_weight(std::int32_t stage) const {
    return stages.empty() ? weight * share(stage) : at(stage).weight;
  }
  // The cost of F of a stage fused with B of another.
  std::int64_t of_fused(std::int32_t stage, std::int32_t other) const {
    if (!stages.empty())
      return of_forward(stage) + of_input(other) + of_weight(other) -
             std::min(at(stage).hidden, at(other).hidden);
    if (shares.empty()) return fused;
    if (fused_is_sum) return of_forward(stage) + of_input(other) + of_weight(other);
    return fused * (share(stage) + share(other)) / 2;
  }
  // Activations expressed as micro-batches through a whole rank.
  double in_microbatches(std::int64_t activations, const shape& sizes) const;
};

// actions: the number that a simulation adds up.
ticks ticks_of(const costs& given, const shape& sizes, std::int64_t actions);

}  // namespace velo::sched
