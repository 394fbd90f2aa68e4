// The rows of expert plans.
#include "tests/calls/rows.hpp"

namespace velo::testing {
namespace {

velo_status create(world& w) {
  static const std::int64_t loads[] = {70, 10, 10, 10}, current[] = {0, 1, 2, 3, -1, -1};
  velo_expert_plan_desc desc = VELO_EXPERT_PLAN_DESC_INIT;
  desc.ranks = 2, desc.slots = 3, desc.experts = 4;
  desc.loads = loads, desc.current = current;
  return velo_expert_plan_create(&desc, &w.expert_plan);
}
void open_plan(world& w) {
  must(create(w));
}
constexpr auto count_copies = &get<velo_expert_plan_get_info, &world::expert_plan>;

}  // namespace

std::vector<call_row> expert_rows() {
  return {
      {"velo_expert_plan_create", nothing, create},
      {"velo_expert_plan_destroy", open_plan,
       destroy<velo_expert_plan_destroy, &world::expert_plan, count_copies>},
      {"velo_expert_plan_get_info", open_plan, count_copies},
      {"velo_expert_plan_get_experts", open_plan,
       [](world& w) {
         std::int64_t experts[3] = {};
         return velo_expert_plan_get_experts(w.expert_plan, 1, experts, 3, nullptr);
       }},
      {"velo_expert_plan_get_ranks", open_plan,
       [](world& w) {
         std::int64_t ranks[2] = {};
         return velo_expert_plan_get_ranks(w.expert_plan, 0, ranks, 2, nullptr);
       }},
      {"velo_expert_plan_write", open_plan,
       write_text<velo_expert_plan_write, &world::expert_plan, VELO_EXPERT_PLAN_JSON>},
      {"velo_expert_plan_write", open_plan,
       write_text<velo_expert_plan_write, &world::expert_plan, VELO_EXPERT_PLAN_SVG>},
  };
}

}  // namespace velo::testing
