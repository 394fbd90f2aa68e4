// Optimizer steps that do not wait for a reduction of all ranks' gradient statistics
// (post-validation of zero bubble pipelines, arXiv:2401.10241).
//
// At its first OPTIMIZER a rank measures its gradients, receives the measurements of the previous
// ranks, and sends them on with its own. From these it chooses a factor and steps at once. The last
// rank knows all measurements. In the next run, after the forwards that need not wait
// (sched/check/ahead.hpp), all measurements return from rank to rank, and every rank chooses again.
// If a rank used another factor before, it rolls the step back and repeats it with the right one.
// Ranks also send on the factors that they used, so each rank knows whether any was wrong; if so,
// the forwards since then are void on all ranks.
//
// Invariants: the complete measurements are the same bytes on all ranks, in rank order, so a step
// has the same bits as one that waited. A rank that cannot decide yet (NaN) does no step. Its
// forwards until then are void: it sends messages without tensors, which make the forwards of other
// ranks void, too. Cost: two short messages in each direction for a step.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/index.hpp"
#include "core/stream/stream.hpp"
#include "sched/check/ahead.hpp"
#include "sched/executor/stage_channel.hpp"
#include "velo/executor.h"

namespace velo::sched {

class step_validation {
 public:
  // Throws ARGUMENT for a row that does not end with OPTIMIZER actions. user: passed to the host's
  // functions.
  step_validation(const velo_executor_validation& desc, void* user, const schedule& pipeline,
                  std::int32_t rank);

  const ahead& before_it() const { return ahead_; }
  bool pending() const { return pending_; }
  // Whether forwards are void because the previous step is not done yet.
  bool waits() const { return pending_ && undecided(taken_[core::at(rank_)]); }

  // Runs an OPTIMIZER action of the row.
  void update(const action& a, core::stream& on, stage_channel& by);
  // Settles the pending step. Returns whether the forwards since that step are void.
  bool settle(core::stream& on, stage_channel& by);
  void forget();  // calls the host's forget for this rank

  const velo_executor_stats& stats() const { return stats_; }

 private:
  static bool undecided(double factor) { return std::isnan(factor); }
  void measure(core::stream& on, stage_channel& by);
  double decide(std::int32_t known);
  void step(const action& a, double factor, bool final, core::stream& on);
  void amend(double right, core::stream& on);

  // Sends the measurements of the first `count` ranks.
  void send(std::int32_t to, std::int32_t count, stage_channel& by);
  void receive(std::int32_t from, std::int32_t count, stage_channel& by);

  const velo_executor_validation desc_;
  void* const user_;
  const std::int32_t rank_, ranks_;
  const ahead ahead_;
  std::vector<action> updates_;        // of the row
  std::vector<double> taken_;          // by rank: the factor of its step
  std::vector<unsigned char> states_;  // by rank, state_size each
  bool pending_ = false;
  velo_executor_stats stats_ = VELO_EXECUTOR_STATS_INIT;
};

}  // namespace velo::sched
