// The rows of plans: buffers, addresses, steps recorded and replayed.
#include "tests/calls/rows.hpp"
#include "tests/structs.hpp"

namespace velo::testing {
namespace {

velo_status read_plan(world& w) {
  static const char rows[] = "id,lower,upper,size\na,0,4,640\nb,2,6,128\nc,5,9,320\nd,3,7,64\n";
  return velo_plan_read(w.plan, VELO_PLAN_CSV, rows, sizeof rows - 1);
}
void open_plan(world& w) {
  must(velo_plan_create(nullptr, &w.plan));
}
void open_filled_plan(world& w) {
  open_plan(w);
  must(read_plan(w));
}
void open_solved_plan(world& w) {
  open_filled_plan(w);
  must(velo_plan_solve(w.plan, nullptr));
}
void open_step_plan(world& w) {
  velo_pool_desc shared = VELO_POOL_DESC_INIT;
  shared.kind = VELO_POOL_SHARED;
  must(velo_pool_create(&shared, &w.pool));
  velo_plan_desc desc = VELO_PLAN_DESC_INIT;
  desc.pool = w.pool;
  must(velo_plan_create(&desc, &w.plan));
}
velo_status allocate_planned(world& w) {
  const velo_pool_request request = request_of(1 << 20);
  return velo_plan_allocate(w.plan, &request, &w.memory);
}
velo_status free_planned(world& w) {
  const velo_status status = velo_plan_free(w.plan, w.memory, 1 << 20, nullptr);
  if (status == VELO_OK) w.memory = nullptr;
  return status;
}
void open_recording(world& w) {
  open_step_plan(w);
  must(velo_plan_begin(w.plan, VELO_PLAN_RECORD));
}
void open_recorded_block(world& w) {
  open_recording(w);
  must(allocate_planned(w));
}
void open_recorded_step(world& w) {
  open_recorded_block(w);
  must(free_planned(w));
}
void open_solved_step(world& w) {
  open_recorded_step(w);
  must(velo_plan_end(w.plan));
  must(velo_plan_solve(w.plan, nullptr));
}
void open_replay(world& w) {
  open_solved_step(w);
  must(velo_plan_begin(w.plan, VELO_PLAN_REPLAY));
}
void open_replayed_block(world& w) {
  open_replay(w);
  must(allocate_planned(w));
}
template <velo_swap_policy Policy>
velo_status solve_swaps(world& w) {
  velo_swap_options options = VELO_SWAP_OPTIONS_INIT;
  options.policy = Policy;
  options.budget = 800;  // less than a, b and d are at once
  options.least_bytes = 0;
  return velo_plan_solve_swaps(w.plan, &options);
}
void open_swaps(world& w) {
  open_filled_plan(w);
  must(velo_plan_add(w.plan, 0, 90, 64, nullptr));
  must(solve_swaps<VELO_SWAP_FURTHEST>(w));
}

}  // namespace

std::vector<call_row> plan_rows() {
  return {
      {"velo_plan_create", nothing, [](world& w) { return velo_plan_create(nullptr, &w.plan); }},
      {"velo_plan_destroy", open_plan,
       destroy<velo_plan_destroy, &world::plan, get<velo_plan_get_stats, &world::plan>>},
      {"velo_plan_add", open_plan,
       [](world& w) { return velo_plan_add(w.plan, 0, 9, 64, nullptr); }},
      {"velo_plan_read", open_plan, read_plan},
      {"velo_plan_solve", open_filled_plan,
       [](world& w) { return velo_plan_solve(w.plan, nullptr); }},
      {"velo_plan_get_buffer", open_solved_plan, get<velo_plan_get_buffer, &world::plan, 0>},
      {"velo_plan_get_stats", open_filled_plan, get<velo_plan_get_stats, &world::plan>},
      {"velo_plan_write", open_solved_plan,
       [](world& w) {
         char text[4096];
         return velo_plan_write(w.plan, VELO_PLAN_SVG, text, sizeof text, nullptr);
       }},
      {"velo_plan_add_use", open_filled_plan,
       [](world& w) { return velo_plan_add_use(w.plan, 0, 0, VELO_ACCESS_READ); }},
      {"velo_plan_add_work", open_plan, [](world& w) { return velo_plan_add_work(w.plan, 0, 1); }},
      {"velo_plan_get_use",
       [](world& w) {
         open_filled_plan(w);
         must(velo_plan_add_use(w.plan, 0, 0, VELO_ACCESS_READ));
       },
       get<velo_plan_get_use, &world::plan, 0>},
      {"velo_plan_begin", open_step_plan,
       [](world& w) { return velo_plan_begin(w.plan, VELO_PLAN_RECORD); }},
      {"velo_plan_begin", open_solved_step,
       [](world& w) { return velo_plan_begin(w.plan, VELO_PLAN_REPLAY); }},
      {"velo_plan_end", open_recorded_step, [](world& w) { return velo_plan_end(w.plan); }},
      {"velo_plan_allocate", open_recording, allocate_planned},
      {"velo_plan_allocate", open_replay, allocate_planned},
      {"velo_plan_free", open_replayed_block, free_planned},
      {"velo_plan_use", open_recorded_block,
       [](world& w) { return velo_plan_use(w.plan, w.memory, VELO_ACCESS_READ); }},
      {"velo_plan_work", open_recording, [](world& w) { return velo_plan_work(w.plan, 1); }},
      {"velo_plan_allocator", open_step_plan, get<velo_plan_allocator, &world::plan>},
      {"velo_plan_get_step", open_replayed_block, get<velo_plan_get_step, &world::plan>},
      {"velo_plan_solve_swaps", open_filled_plan, solve_swaps<VELO_SWAP_FURTHEST>},
      {"velo_plan_solve_swaps", open_filled_plan, solve_swaps<VELO_SWAP_JOINT>},
      {"velo_plan_get_swap_stats", open_swaps, get<velo_plan_get_swap_stats, &world::plan>},
      {"velo_plan_get_swap", open_swaps, get<velo_plan_get_swap, &world::plan, 0>},
      {"velo_plan_place_swaps", open_swaps,
       [](world& w) { return velo_plan_place_swaps(w.plan, nullptr); }},
      {"velo_plan_get_stay", open_swaps, get<velo_plan_get_stay, &world::plan, 0>},
  };
}

}  // namespace velo::testing
