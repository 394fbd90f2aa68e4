// GPipe: every rank does all forwards, then all backwards.
//
// It is simple and needs the most memory: it holds all M micro-batches. Bubble (P - 1)(F + B).
#include "sched/pipeline/generate.hpp"

namespace velo::sched {

schedule make_gpipe(const request& wanted) {
  return by_programs(wanted, {}, loop_placement(wanted.ranks, 1), [&](std::int32_t, program& to) {
    to.repeat(wanted.microbatches, {{VELO_ACTION_F}});
    to.repeat(wanted.microbatches, {{VELO_ACTION_B}});
  });
}

}  // namespace velo::sched
