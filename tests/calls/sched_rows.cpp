// The rows of schedules, timelines and buckets.
#include "tests/calls/rows.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {
namespace {

velo_status create(world& w) {
  const velo_schedule_desc desc = desc_of(VELO_SCHEDULE_INTERLEAVED, {2, 4});
  return velo_schedule_create(&desc, &w.schedule);
}
void open_schedule(world& w) {
  must(create(w));
}
velo_status read_rows(world& w) {
  static const char rows[] = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n";  // 1B1 is missing
  return velo_schedule_read(w.schedule, VELO_SCHEDULE_CSV, rows, sizeof rows - 1);
}
velo_status check(world& w) {
  std::int64_t violations = 0;
  return velo_schedule_check(w.schedule, &violations);
}
void open_checked(world& w) {
  open_schedule(w);
  must(read_rows(w));
  must(check(w));
}
velo_status simulate(world& w) {
  return velo_schedule_simulate(w.schedule, nullptr, &w.timeline);
}
void open_timeline(world& w) {
  open_schedule(w);
  must(simulate(w));
}

constexpr auto get_info = &get<velo_schedule_get_info, &world::schedule>;
constexpr auto get_stats = &get<velo_timeline_get_stats, &world::timeline>;

float gradients[40] = {};
const std::int64_t slices[] = {16, 24}, elements = 40;

velo_tensor all_gradients() {
  return view_of(gradients, f32, elements);
}
void open_group(world& w) {
  open_with_queue(w);
  must(velo_group_create(w.context, nullptr, &w.groups[0]));
}
velo_status create_buckets(world& w) {
  velo_buckets_desc desc = VELO_BUCKETS_DESC_INIT;
  desc.mode = VELO_BUCKETS_REDUCE_SCATTER;
  desc.bytes = 64;
  const velo_tensor all = all_gradients();
  return velo_buckets_create(w.queue, w.groups[0], &all, slices, 2, &desc, &w.buckets);
}
void open_buckets(world& w) {
  open_group(w);
  must(create_buckets(w));
}
velo_status gather(world& w) {
  const velo_tensor all = all_gradients();
  return velo_buckets_gather(w.buckets, w.now, &all);
}
void open_gathered(world& w) {
  open_buckets(w);
  must(gather(w));
}
constexpr auto get_buckets = &get<velo_buckets_get_info, &world::buckets>;

}  // namespace

std::vector<call_row> sched_rows() {
  return {
      {"velo_buckets_create", open_group, create_buckets},
      {"velo_buckets_destroy", open_buckets,
       destroy<velo_buckets_destroy, &world::buckets, get_buckets>},
      {"velo_buckets_ready", open_buckets,
       [](world& w) { return velo_buckets_ready(w.buckets, w.now, 1); }},
      {"velo_buckets_finish", open_buckets,
       [](world& w) { return velo_buckets_finish(w.buckets, w.now); }},
      {"velo_buckets_gather", open_buckets, gather},
      {"velo_buckets_wait", open_gathered,
       [](world& w) { return velo_buckets_wait(w.buckets, w.now, 0); }},
      {"velo_buckets_get_info", open_buckets, get_buckets},
      {"velo_buckets_get_bucket", open_buckets, get<velo_buckets_get_bucket, &world::buckets, 1>},
      {"velo_schedule_create", nothing, create},
      {"velo_schedule_destroy", open_schedule,
       destroy<velo_schedule_destroy, &world::schedule, get_info>},
      {"velo_schedule_read", open_schedule, read_rows},
      {"velo_schedule_get_info", open_schedule, get_info},
      {"velo_schedule_kind_name", nothing,
       [](world&) {
         const char* name = nullptr;
         return velo_schedule_kind_name(VELO_SCHEDULE_ZBV, &name);
       }},
      {"velo_schedule_get_stage", open_schedule, get<velo_schedule_get_stage, &world::schedule, 1>},
      {"velo_schedule_get_length", open_schedule,
       get<velo_schedule_get_length, &world::schedule, 1>},
      {"velo_schedule_get_actions", open_schedule,
       [](world& w) {
         velo_action actions[3];
         return velo_schedule_get_actions(w.schedule, 1, 2, 3, actions);
       }},
      {"velo_schedule_write", open_schedule,
       write_text<velo_schedule_write, &world::schedule, VELO_SCHEDULE_CSV>},
      {"velo_schedule_lower", open_schedule,
       [](world& w) {
         velo_schedule lowered = nullptr;
         const velo_status status = velo_schedule_lower(w.schedule, &lowered);
         velo_schedule_destroy(lowered);
         return status;
       }},
      {"velo_schedule_check", open_schedule, check},
      {"velo_schedule_get_violation", open_checked,
       get<velo_schedule_get_violation, &world::schedule, 0>},
      {"velo_schedule_simulate", open_schedule, simulate},
      {"velo_timeline_destroy", open_timeline,
       destroy<velo_timeline_destroy, &world::timeline, get_stats>},
      {"velo_timeline_get_stats", open_timeline, get_stats},
      {"velo_timeline_get_rank", open_timeline, get<velo_timeline_get_rank, &world::timeline, 1>},
      {"velo_timeline_get_memory", open_timeline,
       get<velo_timeline_get_memory, &world::timeline, 1>},
      {"velo_timeline_get_path", open_timeline,
       [](world& w) {
         velo_path_step steps[4];
         int64_t count = 0;
         return velo_timeline_get_path(w.timeline, 4, steps, &count);
       }},
      {"velo_timeline_write", open_timeline,
       write_text<velo_timeline_write, &world::timeline, VELO_TIMELINE_SUMMARY>},
  };
}

}  // namespace velo::testing
