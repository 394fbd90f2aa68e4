// Kinds of schedules whose order a tuning searches for: bounds, memory, and what they are good for.
#include <algorithm>
#include <limits>

#include "sched/tune/demands.hpp"
#include "tests/sched/schedules.hpp"
#include "tests/sched/tune/tunings.hpp"

using namespace velo;
using namespace velo::testing;
using namespace velo::sched::tune;

namespace {

// Experts, whose exchanges pairs hide; stages that are not alike.
wanted small(const std::string& kinds, int keep = 10000) {
  wanted one;
  one.model += R"(, "moe": {"experts": 4, "active": 2, "hidden": 512, "first": 1})";
  one.search = R"("micro_batch": [1, 2], "cp": [1], "tp": [1], "ep": [2], "vpp": [2], )"
               R"("recompute": ["none", "full"], "kind": [)" +
               kinds + R"(], "keep": )" + std::to_string(keep);
  return one;
}
constexpr const char* searched_kinds = R"("zbh2", "zbv-greedy", "auto")";
constexpr const char* all_kinds =
    R"("1f1b", "zbh1", "zbv", "dualpipev", "zbh2", "zbv-greedy", "auto")";
std::string memory_of(double gib) {
  return R"({"memory_fraction": 1, "memory_gib": )" + std::to_string(gib) + "}";
}

sched::schedule order_of(const plan& one) {
  const sizes of = {one.layout.pp,   one.layout.microbatches, one.layout.vpp, 0, 0, 0,
                    one.searched.cap};
  return generate(desc_of(one.layout.kind, of), one.searched.costs);
}

}  // namespace

TEST_CASE("an order that is searched for takes no less than its bound and holds what is weighed") {
  for (const double gib : {80.0, 2.2}) {
    const tuning all = searched(small(searched_kinds).text(), memory_of(gib));
    int kinds[sched::last_schedule_kind + 1] = {};
    for (const plan& one : all.plans) {
      if (one.layout.pp == 1) continue;
      ++kinds[one.layout.kind];
      CHECK(one.bytes() <= all.of.profile.memory_bytes);
      const layer_costs costs = layer_costs_of(all.of, one.layout);
      const auto stages = stages_of(all.of.model, costs, one.stage_layers);
      double least = std::numeric_limits<double>::infinity();
      for (const sched::placement& of : placements_of(one.layout))
        least = std::min(least, least_seconds(one.layout, costs, stages, of));
      CHECK(least <= one.pipeline * (1 + 1e-9));

      // The plan's order, made again.
      const sched::schedule rows = order_of(one);
      CHECK(violations_of(rows).empty());
      sched::ticks bytes;  // of activations, as shares
      for (const layer_cost& stage : stages) bytes.shares.push_back(std::llround(stage.kept));
      std::vector<sched::stuck_rank> stuck;
      const sched::simulation times = sched::simulate(rows, bytes, stuck);
      REQUIRE(stuck.empty());
      for (std::size_t rank = 0; rank < one.memory.size(); ++rank)
        CHECK(one.memory[rank].activations ==
              Approx(static_cast<double>(times.ranks[rank].peak)).epsilon(1e-9));
    }
    CHECK(write_json(all).find(R"("order": {"cap": )") != std::string::npos);
    for (const velo_schedule_kind kind :
         {VELO_SCHEDULE_ZBH2, VELO_SCHEDULE_ZBV_GREEDY, VELO_SCHEDULE_AUTO})
      CHECK(kinds[kind] > 0);
  }
}

TEST_CASE("the plans kept are the best of all candidates, of kinds that are searched for too") {
  const tuning all = searched(small(all_kinds).text(), memory_of(2.22));
  const tuning some = searched(small(all_kinds, 5).text(), memory_of(2.22));
  REQUIRE(some.plans.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(some.plans[i].step() == all.plans[i].step());
  CHECK(some.plans.size() + some.rejections.size() == all.plans.size() + all.rejections.size());
}

TEST_CASE("an order for the costs can be faster than any formula") {
  const auto best = [](const char* kinds) {
    wanted one;
    one.search =
        std::string(R"("micro_batch": [1], "cp": [1], "tp": [1], "pp": [4], "vpp": [2], )") +
        R"("recompute": ["none"], "kind": [)" + kinds + R"(], "keep": 1)";
    const tuning found = searched(one.text(), memory_of(2.22));
    REQUIRE(found.plans.size() == 1);
    return found.plans[0].step();
  };
  CHECK(best(R"("auto")") <
        0.97 *
            best(R"("1f1b", "interleaved", "zbh1", "zb1p", "zbv", "vhalf", "vmin", "dualpipev")"));
}

TEST_CASE("where nothing fits an order that is searched for can be the nearest") {
  const tuning none = searched(small(searched_kinds, 1).text(), memory_of(0.5));
  CHECK(none.plans.empty());
  REQUIRE(none.nearest >= 0);
  const rejection& nearest = none.rejections[static_cast<std::size_t>(none.nearest)];
  CHECK_FALSE(nearest.at_least);
  const double gib = (nearest.value + 4096) / (1 << 30);
  CHECK_FALSE(searched(small(searched_kinds, 1).text(), memory_of(gib)).plans.empty());
}
