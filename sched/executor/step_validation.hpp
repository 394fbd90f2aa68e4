// Optimizer steps that do not wait for what all ranks' gradients are like (post-validation, of zero
// bubble pipelines, arXiv:2401.10241).
//
// At its first OPTIMIZER a rank measures its gradients, learns from the rank before what those
// before measured, and passes that on with its own; from as much it decides on a factor, and steps
// at once. The last rank knows all. In the next run, behind the forwards that need not wait
// (sched/check/ahead.hpp), what all measured comes back from rank to rank, and every rank decides
// again, as every other: where that is another factor than it took, the step is rolled back and
// done with the right one. Ranks pass on what they took with what they measured, so each knows
// whether any was wrong: then the forwards done since are void, on all.
//
// Invariants: whoever knows all has the same bytes, those of the ranks one behind the other, so a
// step has the bits of one that waited; a rank that cannot decide yet (NaN) does no step, and its
// forwards until then are messages without tensors that say so, and make others' void. Two short
// messages each way a step.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/stream/stream.hpp"
#include "sched/check/ahead.hpp"
#include "sched/executor/courier.hpp"
#include "velo/executor.h"

namespace velo::sched {

class step_validation {
 public:
  // Throws ARGUMENT for a row that does not end with OPTIMIZER, or does something behind it. user:
  // of the functions.
  step_validation(const velo_executor_validation& desc, void* user, const schedule& what,
                  std::int32_t rank);

  const ahead& before_it() const { return ahead_; }
  bool pending() const { return pending_; }
  // Whether forwards are of no use, as the step before them is yet to be done.
  bool waits() const { return pending_ && undecided(taken_[static_cast<std::size_t>(rank_)]); }

  // An OPTIMIZER of the row.
  void update(const action& a, core::stream& on, courier& by);
  // Of the step that is pending: whether forwards since then are void.
  bool settle(core::stream& on, courier& by);
  void forget();  // tells the host of its own

  const velo_executor_stats& stats() const { return stats_; }

 private:
  static bool undecided(double factor) { return std::isnan(factor); }
  void measure(core::stream& on, courier& by);
  double decide(std::int32_t known);
  void step(const action& a, double factor, bool final, core::stream& on);
  void amend(double right, core::stream& on);

  // The first `count` ranks', to or from another.
  void send(std::int32_t to, std::int32_t count, courier& by);
  void receive(std::int32_t from, std::int32_t count, courier& by);

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
