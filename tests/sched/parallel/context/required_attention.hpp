// What tests require of context-parallel attention: results within a bound of the whole sequence's,
// and the same bits at levels 2 and 1.
#pragma once

#include <catch2/catch.hpp>
#include <utility>

#include "tests/sched/overlap/matrices.hpp"
#include "tests/sched/parallel/context/attention_ranks.hpp"

namespace velo::testing {

// The largest difference over the largest number. The reference has the same rounded inputs.
inline double bound_of(velo_dtype dtype) {
  return dtype.code == VELO_DTYPE_BFLOAT ? 0x1p-6 : dtype.bits == 16 ? 0x1p-9 : 1e-5;
}

// Forward and gradient at each level: right, and the same bits at levels 2 and 1.
inline void require_right(const local_ranks& all, const attention_case& of) {
  const whole_attention whole(of);
  const plan_of made(of);
  parts direct;
  for (const char* level : {"2", "1", "0"}) {
    INFO("level " << level);
    set_all(all, "level", level);
    parts now = parts_of(of, whole, made.plan);
    all.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
    for (std::size_t r = 0; r < now.size(); ++r) {
      INFO("rank " << r);
      CHECK(now[r]->error(whole) <= bound_of(of.dtype));
      CHECK(now[r]->borders_kept());
      if (level[0] == '1') CHECK(now[r]->same_bits(*direct[r]));
    }
    if (level[0] == '2') direct = std::move(now);
  }
}

// Each rank's results by a plan.
inline parts results_of(const local_ranks& all, const attention_case& of) {
  const whole_attention whole(of);
  const plan_of made(of);
  parts now = parts_of(of, whole, made.plan);
  all.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
  for (const auto& one : now)
    if (of.keep_prob == 1) CHECK(one->error(whole) <= bound_of(of.dtype));
  return now;
}

}  // namespace velo::testing
