// The rows of memory's functions: pools, adaptors, recompute and swaps; plans' are in
// plan_rows.cpp.
#include "tests/calls/rows.hpp"
#include "tests/structs.hpp"

namespace velo::testing {
namespace {

float numbers[16] = {};

velo_status allocate(world& w) {
  const velo_pool_request request = request_of(1 << 20);
  return velo_pool_allocate(w.pool, &request, &w.memory);
}
void open_pool(world& w) {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.kind = VELO_POOL_SHARED;
  must(velo_pool_create(&desc, &w.pool));
}
void open_with_block(world& w) {
  open_with_queue(w);
  open_pool(w);
  must(allocate(w));
}
void open_recorded(world& w) {
  open_with_block(w);
  must(velo_pool_record(w.pool, 20));
  must(velo_pool_note(w.pool, nullptr, "step 1"));
}
velo_status create_adaptor(world& w) {
  velo_allocator below = VELO_ALLOCATOR_INIT;
  must(velo_pool_allocator(w.pool, &below));
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  desc.upstream = &below;
  return velo_adaptor_create(&desc, &w.adaptor);
}
void open_with_adaptor(world& w) {
  open_pool(w);
  must(create_adaptor(w));
}
velo_status choose_modules(world&) {
  static const velo_recompute_module modules[] = {
      {0, -1, 900, 90, 3}, {0, 0, 500, 9, 2}, {0, 0, 300, 9, 1}, {1, -1, 700, 9, 3}};
  velo_recompute_rule rule = VELO_RECOMPUTE_RULE_INIT;
  velo_recompute_budget budget = VELO_RECOMPUTE_BUDGET_INIT;
  velo_recompute_choice choice = VELO_RECOMPUTE_CHOICE_INIT;
  std::int32_t chosen[4] = {};
  rule.method = VELO_RECOMPUTE_METHOD_ADAPTIVE;
  rule.layers = 2;
  budget.bytes = 1200;
  return velo_recompute_choose(&rule, &budget, modules, 4, chosen, &choice);
}
velo_status restored(void*, const velo_recompute_call*) {
  return VELO_OK;
}
velo_status create_recompute(world& w) {
  velo_allocator below = VELO_ALLOCATOR_INIT;
  must(velo_pool_allocator(w.pool, &below));
  velo_recompute_desc desc = VELO_RECOMPUTE_DESC_INIT;
  desc.allocator = &below;
  return velo_recompute_create(&desc, &w.recompute);
}
void open_recompute(world& w) {
  open_pool(w);
  must(create_recompute(w));
}
velo_status add_region(world& w) {
  static const std::uint64_t bytes[] = {64, 1 << 20};
  const velo_recompute_input inputs[] = {{numbers, -1, 0}, {nullptr, w.region, 0}};
  velo_recompute_region region = VELO_RECOMPUTE_REGION_INIT;
  region.name = "a_region_with_a_long_name";
  region.restore = &restored;
  region.inputs = inputs;
  region.input_count = w.region >= 0 ? 2 : 1;
  region.output_bytes = bytes;
  region.output_count = 2;
  return velo_recompute_add(w.recompute, &region, nullptr, &w.region);
}
void open_with_region(world& w) {
  open_recompute(w);
  w.region = -1;
  must(add_region(w));
  must(add_region(w));
}
void open_with_released(world& w) {
  open_with_region(w);
  must(velo_recompute_release(w.recompute, w.region - 1, nullptr));
  must(velo_recompute_release(w.recompute, w.region, nullptr));
}
velo_status add_op(world& w, std::int64_t before) {
  static const std::int64_t inputs[] = {0, 1, 2};
  velo_recompute_op op = VELO_RECOMPUTE_OP_INIT;
  op.seconds = 1;
  op.bytes = 10;
  op.inputs = inputs;
  op.input_count = before;
  return velo_recompute_plan_add(w.recompute_plan, &op, nullptr);
}
velo_status solve_recompute(world& w) {
  velo_recompute_plan_options options = VELO_RECOMPUTE_PLAN_OPTIONS_INIT;
  options.budget = 40;
  return velo_recompute_plan_solve(w.recompute_plan, &options);
}
void open_recompute_plan(world& w) {
  must(velo_recompute_plan_create(&w.recompute_plan));
  for (int i = 0; i < 3; ++i) must(add_op(w, i));
}
void open_solved_recompute(world& w) {
  open_recompute_plan(w);
  must(solve_recompute(w));
}
// A swap on disk of objects in a pool of its own; pages of 4 KiB, three of them an object.
constexpr std::uint64_t object_bytes = 10000;
velo_status create_swap(world& w) {
  velo_swap_desc desc = VELO_SWAP_DESC_INIT;
  desc.tier = VELO_SWAP_DISK;
  desc.directories = "/tmp";
  desc.memory = w.pool;
  desc.block = 4096;
  return velo_swap_create(w.context, &desc, &w.swap);
}
velo_status add_object(world& w) {
  return velo_swap_add(w.swap, nullptr, object_bytes, VELO_SWAP_COLD, &w.object);
}
void open_for_swap(world& w) {
  w.open();
  must(velo_pool_create(nullptr, &w.pool));
}
void open_swap(world& w) {
  open_for_swap(w);
  must(create_swap(w));
}
void open_with_object(world& w) {
  open_swap(w);
  must(add_object(w));
  must(velo_swap_assign(w.swap, w.object, 1));
  velo_swap_object info = VELO_SWAP_OBJECT_INIT;
  must(velo_swap_get_object(w.swap, w.object, &info));
  for (std::uint64_t i = 0; i < object_bytes; ++i) static_cast<char*>(info.memory)[i] = 1;
}
velo_status await_object(world& w, velo_status queued) {
  return queued != VELO_OK ? queued : velo_swap_wait(w.swap, w.object, w.now);
}
velo_status send_object(world& w) {
  return await_object(w, velo_swap_out(w.swap, w.object, w.now, nullptr));
}
void open_with_object_out(world& w) {
  open_with_object(w);
  must(send_object(w));
}
// A step of two buffers that are not in memory at once, so that one goes and comes back.
void open_placed(world& w) {
  open_swap(w);
  must(velo_plan_create(nullptr, &w.plan));
  for (std::int64_t s = 0; s < 3; ++s) must(velo_plan_add_work(w.plan, 10 * s + 9, 1));
  must(velo_plan_add(w.plan, 2, 28, object_bytes, nullptr));
  must(velo_plan_add(w.plan, 12, 18, object_bytes, nullptr));
  must(velo_plan_add_use(w.plan, 0, 25, VELO_ACCESS_READ));
  velo_swap_options options = VELO_SWAP_OPTIONS_INIT;
  options.budget = object_bytes;
  options.least_bytes = 0;
  must(velo_plan_solve_swaps(w.plan, &options));
  must(velo_plan_place_swaps(w.plan, nullptr));
}
velo_status begin_step(world& w) {
  return velo_swap_begin_step(w.swap, w.plan, nullptr, w.now);
}
void open_first_stage(world& w) {
  open_placed(w);
  must(begin_step(w));
  must(velo_swap_begin_stage(w.swap, nullptr));
}
// A step of three stages; after a failure it can only be ended.
velo_status run_step(world& w) {
  velo_status status = begin_step(w);
  for (int stage = 0; stage < 3 && status == VELO_OK; ++stage)
    status = velo_swap_begin_stage(w.swap, nullptr);
  velo_swap_end_step(w.swap);
  return status;
}

}  // namespace

std::vector<call_row> memory_rows() {
  return {
      {"velo_pool_create", nothing,
       [](world& w) {
         velo_pool_desc desc = VELO_POOL_DESC_INIT;
         desc.kind = VELO_POOL_SHARED;
         return velo_pool_create(&desc, &w.pool);
       }},
      {"velo_pool_destroy", open_pool,
       destroy<velo_pool_destroy, &world::pool, run_on<velo_pool_check, &world::pool>>},
      {"velo_pool_allocate", open_pool, allocate},
      {"velo_pool_free", open_with_block,
       [](world& w) {
         const velo_status status = velo_pool_free(w.pool, w.memory, 1 << 20, nullptr);
         if (status == VELO_OK) w.memory = nullptr;
         return status;
       }},
      {"velo_pool_free", open_with_block,  // behind the work of a stream
       [](world& w) {
         const velo_status status = velo_pool_free(w.pool, w.memory, 1 << 20, w.queue);
         if (status == VELO_OK) w.memory = nullptr;
         return status;
       }},
      {"velo_pool_trim", open_with_block,
       [](world& w) { return velo_pool_trim(w.pool, 0, nullptr); }},
      {"velo_pool_set_limit", open_pool,
       [](world& w) { return velo_pool_set_limit(w.pool, 1 << 20); }},
      {"velo_pool_allocator", open_pool, get<velo_pool_allocator, &world::pool>},
      {"velo_pool_functions", open_pool,
       [](world& w) {
         void *take = nullptr, *give = nullptr;
         return velo_pool_functions(w.pool, &take, &give);
       }},
      {"velo_pool_check", open_with_block, [](world& w) { return velo_pool_check(w.pool); }},
      {"velo_pool_locate", open_with_block,
       [](world& w) {
         std::int32_t file = -1;
         std::uint64_t offset = 0;
         return velo_pool_locate(w.pool, w.memory, &file, &offset);
       }},
      {"velo_pool_get_stats", open_with_block, get<velo_pool_get_stats, &world::pool>},
      {"velo_pool_record", open_pool, [](world& w) { return velo_pool_record(w.pool, 2000); }},
      {"velo_pool_note", open_recorded,
       [](world& w) { return velo_pool_note(w.pool, w.memory, "a note"); }},
      {"velo_pool_snapshot", open_recorded,
       write_text<velo_pool_snapshot, &world::pool, VELO_SNAPSHOT_TIMELINE>},
      {"velo_pool_save", open_recorded,
       [](world& w) {
         const char* name = "faults-snapshot.json";
         const velo_status status = velo_pool_save(w.pool, VELO_SNAPSHOT_JSON, name);
         std::remove(name);
         return status;
       }},
      {"velo_pool_get_stream_stats", open_with_block,
       [](world& w) {
         velo_pool_stream_stats stats = VELO_POOL_STREAM_STATS_INIT;
         return velo_pool_get_stream_stats(w.pool, w.queue, &stats);
       }},
      {"velo_adaptor_create", open_pool, create_adaptor},
      {"velo_adaptor_destroy", open_with_adaptor,
       destroy<velo_adaptor_destroy, &world::adaptor, run_on<velo_adaptor_flush, &world::adaptor>>},
      {"velo_adaptor_allocator", open_with_adaptor, get<velo_adaptor_allocator, &world::adaptor>},
      {"velo_adaptor_get_stats", open_with_adaptor, get<velo_adaptor_get_stats, &world::adaptor>},
      {"velo_adaptor_flush", open_with_adaptor,
       [](world& w) { return velo_adaptor_flush(w.adaptor); }},
      {"velo_recompute_layers", nothing,
       [](world&) {
         velo_recompute_rule rule = VELO_RECOMPUTE_RULE_INIT;
         velo_recompute_layer layer{};
         return velo_recompute_layers(&rule, &layer, 1, nullptr);
       }},
      {"velo_recompute_choose", nothing, choose_modules},
      {"velo_recompute_create", open_pool, create_recompute},
      {"velo_recompute_destroy", open_with_region,
       destroy<velo_recompute_destroy, &world::recompute,
               get<velo_recompute_get_stats, &world::recompute>>},
      {"velo_recompute_add", open_recompute, add_region},
      {"velo_recompute_get_output", open_with_region,
       [](world& w) {
         void* memory = nullptr;
         return velo_recompute_get_output(w.recompute, w.region, 1, &memory);
       }},
      {"velo_recompute_release", open_with_region,
       [](world& w) { return velo_recompute_release(w.recompute, w.region, nullptr); }},
      {"velo_recompute_restore", open_with_released,
       [](world& w) { return velo_recompute_restore(w.recompute, w.region, nullptr); }},
      {"velo_recompute_end", open_with_region,
       [](world& w) { return velo_recompute_end(w.recompute, w.region, nullptr); }},
      {"velo_recompute_get_stats", open_with_region,
       get<velo_recompute_get_stats, &world::recompute>},
      {"velo_recompute_plan_create", nothing,
       [](world& w) { return velo_recompute_plan_create(&w.recompute_plan); }},
      {"velo_recompute_plan_destroy", open_recompute_plan,
       destroy<velo_recompute_plan_destroy, &world::recompute_plan,
               get<velo_recompute_plan_get_stats, &world::recompute_plan>>},
      {"velo_recompute_plan_add", open_recompute_plan, [](world& w) { return add_op(w, 3); }},
      {"velo_recompute_plan_solve", open_recompute_plan, solve_recompute},
      {"velo_recompute_plan_get_step", open_solved_recompute,
       get<velo_recompute_plan_get_step, &world::recompute_plan, 0>},
      {"velo_recompute_plan_get_stats", open_solved_recompute,
       get<velo_recompute_plan_get_stats, &world::recompute_plan>},
      {"velo_swap_create", open_for_swap, create_swap},
      {"velo_swap_destroy", open_with_object_out,
       destroy<velo_swap_destroy, &world::swap, get<velo_swap_get_stats, &world::swap>>},
      {"velo_swap_add", open_swap, add_object},
      {"velo_swap_drop", open_with_object_out,
       [](world& w) { return velo_swap_drop(w.swap, w.object, nullptr); }},
      {"velo_swap_out", open_with_object, send_object},
      {"velo_swap_in", open_with_object_out,
       [](world& w) {
         return await_object(w, velo_swap_in(w.swap, w.object, nullptr, w.now, nullptr));
       }},
      {"velo_swap_wait", open_with_object,
       [](world& w) { return velo_swap_wait(w.swap, w.object, w.now); }},
      {"velo_swap_get_object", open_with_object,
       [](world& w) {
         velo_swap_object info = VELO_SWAP_OBJECT_INIT;
         return velo_swap_get_object(w.swap, w.object, &info);
       }},
      {"velo_swap_assign", open_with_object,
       [](world& w) { return velo_swap_assign(w.swap, w.object, 2); }},
      {"velo_swap_forward", open_with_object,
       [](world& w) { return await_object(w, velo_swap_forward(w.swap, 1, w.now)); }},
      {"velo_swap_backward", open_with_object_out,
       [](world& w) { return velo_swap_backward(w.swap, 1, w.now); }},
      {"velo_swap_update", open_with_object_out,
       [](world& w) {
         return velo_swap_update(
             w.swap, &w.object, 1, 3,
             [](void*, std::uint64_t, std::uint64_t, void* const*) -> std::int32_t { return 0; },
             nullptr);
       }},
      {"velo_swap_get_stats", open_with_object, get<velo_swap_get_stats, &world::swap>},
      {"velo_swap_begin_step", open_placed, begin_step},
      {"velo_swap_begin_stage", open_placed, run_step},
      {"velo_swap_get_buffer", open_first_stage,
       [](world& w) {
         void* memory = nullptr;
         return velo_swap_get_buffer(w.swap, 0, &memory);
       }},
      {"velo_swap_end_step", open_first_stage, [](world& w) { return velo_swap_end_step(w.swap); }},
  };
}

}  // namespace velo::testing
