// The rows of executors and mailboxes: a rank alone, which sends itself what crosses.
#include "tests/calls/rows.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {
namespace {

velo_status act(void*, velo_executor_call* call) {
  static float values[4] = {};
  static const std::int64_t shape[] = {4};
  if (call->action.kind == VELO_ACTION_B) return VELO_OK;
  call->outputs[0] = view_of(values, f32, shape);
  call->output_count = 1;
  return VELO_OK;
}

velo_status create_mailbox(world& w) {
  return velo_mailbox_create(1, std::int64_t{1} << 40, &w.mailbox);
}
constexpr auto get_link = &get<velo_mailbox_get_link, &world::mailbox, 0>;
void open_mailbox(world& w) {
  open(w);
  must(create_mailbox(w));
}
void open_group(world& w) {
  open(w);
  must(velo_group_create(w.context, nullptr, &w.groups[0]));
}
velo_status group_link(world& w) {
  velo_link link = VELO_LINK_INIT;
  return velo_group_get_link(w.groups[0], &link);
}
void make_schedule(world& w, std::uint32_t flags) {
  const velo_schedule_desc desc = desc_of(VELO_SCHEDULE_INTERLEAVED, {1, 3, 0, 0, flags});
  must(velo_schedule_create(&desc, &w.schedule));
}
void open_schedule(world& w) {
  open_mailbox(w);
  make_schedule(w, 0);
}
velo_status create(world& w) {
  velo_link link = VELO_LINK_INIT;
  must(velo_mailbox_get_link(w.mailbox, 0, &link));
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  desc.link = &link;
  desc.flags = VELO_EXECUTOR_RECORD;
  desc.forward = desc.backward = &act;
  return velo_executor_create(w.context, w.schedule, &desc, &w.executor);
}
void open_executor(world& w) {
  open_schedule(w);
  must(create(w));
}
velo_status run(world& w) {
  return velo_executor_run(w.now, w.executor);
}
void open_run(world& w) {
  open_executor(w);
  must(run(w));
}
// One that validates steps, with one to be validated.
velo_status no_step(void*, velo_stream, const velo_action*, double, std::int32_t) {
  return VELO_OK;
}
void open_validated(world& w) {
  open_mailbox(w);
  make_schedule(w, VELO_SCHEDULE_OPTIMIZER);
  velo_executor_validation late = VELO_EXECUTOR_VALIDATION_INIT;
  late.state_size = 8;
  late.measure = [](void*, velo_stream, void* state) -> velo_status {
    *static_cast<double*>(state) = 1;
    return VELO_OK;
  };
  late.decide = [](void*, const void*, std::int32_t, std::int32_t, double* factor) -> velo_status {
    *factor = 1;
    return VELO_OK;
  };
  late.step = &no_step;
  late.rollback = [](void*, velo_stream) -> velo_status { return VELO_OK; };
  velo_executor_desc part = VELO_EXECUTOR_DESC_INIT;
  part.forward = part.backward = &act;
  part.validation = &late;
  must(velo_executor_create(w.context, w.schedule, &part, &w.executor));
  must(run(w));
}

}  // namespace

std::vector<call_row> executor_rows() {
  return {
      {"velo_mailbox_create", open, create_mailbox},
      {"velo_mailbox_destroy", open_mailbox,
       destroy<velo_mailbox_destroy, &world::mailbox, get_link>},
      {"velo_mailbox_get_link", open_mailbox, get_link},
      {"velo_group_get_link", open_group, group_link},
      {"velo_executor_create", open_schedule, create},
      {"velo_executor_destroy", open_executor,
       destroy<velo_executor_destroy, &world::executor,
               run_on<velo_executor_cancel, &world::executor>>},
      {"velo_executor_run", open_executor, run},
      {"velo_executor_settle", open_validated,
       [](world& w) { return velo_executor_settle(w.now, w.executor); }},
      {"velo_executor_get_stats", open_executor, get<velo_executor_get_stats, &world::executor>},
      {"velo_executor_cancel", open_executor,
       [](world& w) { return velo_executor_cancel(w.executor); }},
      {"velo_executor_get_timeline", open_run,
       [](world& w) { return velo_executor_get_timeline(w.executor, &w.timeline); }},
  };
}

}  // namespace velo::testing
