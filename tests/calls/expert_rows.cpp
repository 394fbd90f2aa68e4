// The rows of expert plans and of plans of sublayers.
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

velo_status create_sublayers(world& w) {
  velo_sublayers_desc desc = VELO_SUBLAYERS_DESC_INIT;
  desc.forward_layers = 1;
  return velo_sublayers_create(&desc, &w.sublayers);
}
void open_sublayers(world& w) {
  open(w);
  must(create_sublayers(w));
}
velo_status start(void*, velo_stream, const velo_sublayer_step*) {
  return VELO_OK;
}
constexpr auto count_steps = &get<velo_sublayers_get_info, &world::sublayers>;
template <velo_sublayers_format format>
velo_status write_sublayers(world& w) {
  char text[16];
  return velo_sublayers_write(w.sublayers, nullptr, format, text, sizeof text, nullptr);
}

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
      {"velo_sublayers_create", nothing, create_sublayers},
      {"velo_sublayers_destroy", open_sublayers,
       destroy<velo_sublayers_destroy, &world::sublayers, count_steps>},
      {"velo_sublayers_get_info", open_sublayers, count_steps},
      {"velo_sublayers_get_steps", open_sublayers,
       [](world& w) {
         velo_sublayer_step steps[4];
         return velo_sublayers_get_steps(w.sublayers, steps, 4, nullptr);
       }},
      {"velo_sublayers_get_needs", open_sublayers,
       [](world& w) {
         std::int64_t needs[1] = {};
         return velo_sublayers_get_needs(w.sublayers, 1, needs, 1, nullptr);
       }},
      {"velo_sublayers_write", open_sublayers, write_sublayers<VELO_SUBLAYERS_JSON>},
      {"velo_sublayers_write", open_sublayers, write_sublayers<VELO_SUBLAYERS_SVG>},
      {"velo_sublayers_run", open_sublayers,
       [](world& w) {
         velo_sublayers_run_desc desc = VELO_SUBLAYERS_RUN_DESC_INIT;
         desc.compute = desc.message = &start;
         return velo_sublayers_run(w.now, w.now, w.sublayers, &desc);
       }},
  };
}

}  // namespace velo::testing
