// The rows of plans: buffers, addresses, steps recorded and replayed.
#include "tests/faults/rows.hpp"

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
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  request.bytes = 1 << 20;
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
velo_status solve_swaps(world& w) {
  velo_swap_options options = VELO_SWAP_OPTIONS_INIT;
  options.budget = 800;  // less than a, b and d are at once
  options.least_bytes = 0;
  return velo_plan_solve_swaps(w.plan, &options);
}
velo_status solve_jointly(world& w) {
  velo_swap_options options = VELO_SWAP_OPTIONS_INIT;
  options.policy = VELO_SWAP_JOINT;
  options.budget = 800;
  options.least_bytes = 0;
  return velo_plan_solve_swaps(w.plan, &options);
}
void open_swaps(world& w) {
  open_filled_plan(w);
  must(velo_plan_add(w.plan, 0, 90, 64, nullptr));
  must(solve_swaps(w));
}
void close_plan(world& w) {
  velo_plan_destroy(w.plan);
  w.plan = nullptr;
}
void close_step_plan(world& w) {
  if (w.memory != nullptr) velo_plan_free(w.plan, w.memory, 1 << 20, nullptr);
  w.memory = nullptr;
  close_plan(w);
  velo_pool_destroy(w.pool);
  w.pool = nullptr;
}

}  // namespace

std::vector<entry> plan_rows() {
  return {
      {"velo_plan_create", nothing, [](world& w) { return velo_plan_create(nullptr, &w.plan); },
       close_plan},
      {"velo_plan_destroy", open_plan,
       [](world& w) {
         velo_plan_destroy(w.plan);
         velo_plan_stats stats = VELO_PLAN_STATS_INIT;
         return gone(velo_plan_get_stats(w.plan, &stats));
       },
       nothing},
      {"velo_plan_add", open_plan,
       [](world& w) { return velo_plan_add(w.plan, 0, 9, 64, nullptr); }, close_plan},
      {"velo_plan_read", open_plan, read_plan, close_plan},
      {"velo_plan_solve", open_filled_plan,
       [](world& w) { return velo_plan_solve(w.plan, nullptr); }, close_plan},
      {"velo_plan_get_buffer", open_solved_plan,
       [](world& w) {
         velo_plan_buffer buffer = VELO_PLAN_BUFFER_INIT;
         return velo_plan_get_buffer(w.plan, 0, &buffer);
       },
       close_plan},
      {"velo_plan_get_stats", open_filled_plan,
       [](world& w) {
         velo_plan_stats stats = VELO_PLAN_STATS_INIT;
         return velo_plan_get_stats(w.plan, &stats);
       },
       close_plan},
      {"velo_plan_write", open_solved_plan,
       [](world& w) {
         char text[4096];
         return velo_plan_write(w.plan, VELO_PLAN_SVG, text, sizeof text, nullptr);
       },
       close_plan},
      {"velo_plan_add_use", open_filled_plan,
       [](world& w) { return velo_plan_add_use(w.plan, 0, 0, VELO_ACCESS_READ); }, close_plan},
      {"velo_plan_add_work", open_plan, [](world& w) { return velo_plan_add_work(w.plan, 0, 1); },
       close_plan},
      {"velo_plan_get_use",
       [](world& w) {
         open_filled_plan(w);
         must(velo_plan_add_use(w.plan, 0, 0, VELO_ACCESS_READ));
       },
       [](world& w) {
         velo_plan_use_info use = VELO_PLAN_USE_INFO_INIT;
         return velo_plan_get_use(w.plan, 0, &use);
       },
       close_plan},
      {"velo_plan_begin", open_step_plan,
       [](world& w) { return velo_plan_begin(w.plan, VELO_PLAN_RECORD); }, close_step_plan},
      {"velo_plan_begin", open_solved_step,
       [](world& w) { return velo_plan_begin(w.plan, VELO_PLAN_REPLAY); }, close_step_plan},
      {"velo_plan_end", open_recorded_step, [](world& w) { return velo_plan_end(w.plan); },
       close_step_plan},
      {"velo_plan_allocate", open_recording, allocate_planned, close_step_plan},
      {"velo_plan_allocate", open_replay, allocate_planned, close_step_plan},
      {"velo_plan_free", open_replayed_block, free_planned, close_step_plan},
      {"velo_plan_use", open_recorded_block,
       [](world& w) { return velo_plan_use(w.plan, w.memory, VELO_ACCESS_READ); }, close_step_plan},
      {"velo_plan_work", open_recording, [](world& w) { return velo_plan_work(w.plan, 1); },
       close_step_plan},
      {"velo_plan_allocator", open_step_plan,
       [](world& w) {
         velo_allocator allocator = VELO_ALLOCATOR_INIT;
         return velo_plan_allocator(w.plan, &allocator);
       },
       close_step_plan},
      {"velo_plan_get_step", open_replayed_block,
       [](world& w) {
         velo_plan_step step = VELO_PLAN_STEP_INIT;
         return velo_plan_get_step(w.plan, &step);
       },
       close_step_plan},
      {"velo_plan_solve_swaps", open_filled_plan, solve_swaps, close_plan},
      {"velo_plan_solve_swaps", open_filled_plan, solve_jointly, close_plan},
      {"velo_plan_get_swap_stats", open_swaps,
       [](world& w) {
         velo_plan_swap_stats stats = VELO_PLAN_SWAP_STATS_INIT;
         return velo_plan_get_swap_stats(w.plan, &stats);
       },
       close_plan},
      {"velo_plan_get_swap", open_swaps,
       [](world& w) {
         velo_plan_swap swap = VELO_PLAN_SWAP_INIT;
         return velo_plan_get_swap(w.plan, 0, &swap);
       },
       close_plan},
      {"velo_plan_place_swaps", open_swaps,
       [](world& w) { return velo_plan_place_swaps(w.plan, nullptr); }, close_plan},
      {"velo_plan_get_stay", open_swaps,
       [](world& w) {
         velo_plan_stay stay = VELO_PLAN_STAY_INIT;
         return velo_plan_get_stay(w.plan, 0, &stay);
       },
       close_plan},
  };
}

}  // namespace velo::testing
