// The rows of executors: functions of actions, of steps, and of a link, between two ranks; and of a
// run of sublayers.
#include <thread>

#include "tests/faults/inside_parts.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {
namespace {

const std::set<std::string> in_use = {"velo_context", "velo_executor"};

constexpr std::int64_t elements = 1 << 18;  // so many that a group's link borrows
float values[elements] = {};

// Functions of the first rank meddle, which user is given for.
velo_status act(void* user, velo_executor_call* call) {
  static const std::int64_t shape[] = {elements};
  if (user != nullptr) meddle_in(call->action.kind == VELO_ACTION_F ? "forward" : "backward");
  call->outputs[0] = view_of(values, f32, shape);
  call->output_count = 1;
  return VELO_OK;
}

// The second rank's steps are right. The first one's are by 1 until it hears of both, and then by a
// half.
velo_executor_validation late_steps() {
  velo_executor_validation late = VELO_EXECUTOR_VALIDATION_INIT;
  late.state_size = 8;
  late.measure = [](void* user, velo_stream, void* state) -> velo_status {
    if (user != nullptr) meddle_in("measure");
    *static_cast<double*>(state) = 1;
    return VELO_OK;
  };
  late.decide = [](void* user, const void*, std::int32_t known, std::int32_t ranks,
                   double* factor) -> velo_status {
    if (user != nullptr) meddle_in("decide");
    *factor = known < ranks ? 1 : 0.5;
    return VELO_OK;
  };
  late.step = [](void* user, velo_stream, const velo_action*, double, std::int32_t) -> velo_status {
    if (user != nullptr) meddle_in("step");
    return VELO_OK;
  };
  late.rollback = [](void* user, velo_stream) -> velo_status {
    if (user != nullptr) meddle_in("rollback");
    return VELO_OK;
  };
  late.forget = [](void* user) -> velo_status {
    if (user != nullptr) meddle_in("forget");
    return VELO_OK;
  };
  return late;
}

// Two ranks: the scene's, and one on a thread of its own.
class pair {
 public:
  explicit pair(scene& s) : s_(s) { must(velo_context_create(nullptr, &s.peer)); }
  ~pair() { velo_mailbox_destroy(hidden_); }
  pair(const pair&) = delete;
  pair& operator=(const pair&) = delete;

  void over_mailbox() { over(s_.mailbox); }
  // A mailbox that only the functions of the host know: to destroy it under the other rank's thread
  // would be an error of the host.
  void over_hidden_mailbox() {
    must(velo_mailbox_create(2, deadline, &hidden_));
    over(hidden_);
  }
  void over_group() {
    velo_context_destroy(s_.peer);
    open_local_groups(s_);
    for (int rank = 0; rank < 2; ++rank) must(velo_group_get_link(s_.groups[rank], &links[rank]));
  }

  void make(bool validates) {
    make_schedule(s_, validates ? VELO_SCHEDULE_OPTIMIZER : 0);
    const velo_executor_validation late = late_steps();
    for (int rank = 0; rank < 2; ++rank) {
      velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
      desc.rank = rank;
      desc.link = &links[rank];
      desc.user = rank == 0 ? &s_ : nullptr;
      desc.forward = desc.backward = &act;
      desc.released = [](void* user, const velo_action*) {
        if (user != nullptr) meddle_in("released");
      };
      desc.validation = validates ? &late : nullptr;
      must(velo_executor_create(rank == 0 ? s_.context : s_.peer, s_.schedule, &desc,
                                rank == 0 ? &s_.executor : &second_));
    }
  }

  // Twice where steps are validated, in the first run of which nothing is wrong yet.
  velo_status run(velo_stream on, int times = 1) {
    velo_stream peer_now = nullptr;
    must(velo_context_stream(s_.peer, &peer_now));
    std::thread peer([&] {
      for (int i = 0; i < times; ++i)
        if (velo_executor_run(peer_now, second_) != VELO_OK) return;
    });
    velo_status status = VELO_OK;
    for (int i = 0; i < times && status == VELO_OK; ++i)
      status = velo_executor_run(on, s_.executor);
    peer.join();
    velo_executor_destroy(second_);
    return status;
  }

  velo_link links[2] = {VELO_LINK_INIT, VELO_LINK_INIT};

 private:
  void over(velo_mailbox by) {
    for (int rank = 0; rank < 2; ++rank) must(velo_mailbox_get_link(by, rank, &links[rank]));
  }

  scene& s_;
  velo_mailbox hidden_ = nullptr;
  velo_executor second_ = nullptr;
};

// Both functions of the plan's run, whose steps fail where `result` is no success.
velo_status run_sublayers(scene& s, const char* function, velo_status result) {
  velo_sublayers_run_desc desc = VELO_SUBLAYERS_RUN_DESC_INIT;
  desc.user = &result;
  desc.compute =
      desc.message = [](void* user, velo_stream, const velo_sublayer_step*) -> velo_status {
    meddle_in("step of a layer");
    return *static_cast<const velo_status*>(user);
  };
  desc.failed = [](void*, const velo_sublayer_step*, velo_status) { meddle_in("failed"); };
  meddles_in = function;
  return velo_sublayers_run(s.now, s.now, s.sublayers, &desc);
}

velo_status act_in(scene& s, const char* function, bool validates = false) {
  pair both(s);
  both.over_mailbox();
  both.make(validates);
  meddles_in = function;
  return both.run(s.now, validates ? 2 : 1);
}
velo_status act_queued(scene& s) {
  pair both(s);
  both.over_mailbox();
  both.make(false);
  meddles_in = "forward";
  return both.run(s.queue);
}
velo_status act_over_group(scene& s) {
  pair both(s);
  both.over_group();
  both.make(false);
  meddles_in = "backward";
  return both.run(s.now);
}

// A link of the host's in front of the first rank's.
velo_link within;

velo_link of_host(const velo_link& inner) {
  within = inner;
  velo_link made = inner;
  made.send = [](void* user, std::int32_t to, const void* bytes, std::uint64_t size) {
    meddle_in("send");
    return within.send(user, to, bytes, size);
  };
  made.receive = [](void* user, std::int32_t from, void* bytes, std::uint64_t size) {
    meddle_in("receive");
    return within.receive(user, from, bytes, size);
  };
  made.abort = [](void* user, const char* why) {
    meddle_in("abort");
    within.abort(user, why);
  };
  if (inner.start_send == nullptr) return made;
  made.start_send = [](void* user, std::int32_t to, const void* bytes, std::uint64_t size) {
    meddle_in("start_send");
    return within.start_send(user, to, bytes, size);
  };
  made.finish = [](void* user) {
    meddle_in("finish");
    return within.finish(user);
  };
  made.borrow = [](void* user, std::int32_t from, std::uint64_t size, void** bytes) {
    meddle_in("borrow");
    return within.borrow(user, from, size, bytes);
  };
  made.give_back = [](void* user, void* bytes) {
    meddle_in("give_back");
    within.give_back(user, bytes);
  };
  return made;
}
velo_status link_in(scene& s, const char* function, bool by_group) {
  pair both(s);
  by_group ? both.over_group() : both.over_hidden_mailbox();
  both.links[0] = of_host(both.links[0]);
  both.make(false);
  meddles_in = function;
  return both.run(s.now);
}
velo_status cancel(scene& s) {
  pair both(s);
  both.over_hidden_mailbox();
  both.links[0] = of_host(both.links[0]);
  both.make(false);
  meddles_in = "abort";
  const velo_status status = velo_executor_cancel(s.executor);
  both.run(s.now);  // which fails on both
  return status;
}

}  // namespace

void make_schedule(scene& s, std::uint32_t flags) {
  velo_executor_destroy(s.executor);
  velo_schedule_destroy(s.schedule);
  const velo_schedule_desc shape = desc_of(VELO_SCHEDULE_1F1B, {2, 2, 0, 0, flags});
  must(velo_schedule_create(&shape, &s.schedule));
}

std::vector<inside_row> executor_inside_rows() {
  const std::set<std::string> by_mailbox = with(in_use, {"velo_mailbox"}),
                              by_plan = {"velo_context", "velo_sublayers"};
  return {
      {"velo_executor_fn", "forward", by_mailbox, [](scene& s) { return act_in(s, "forward"); }},
      {"velo_executor_fn", "forward, queued", with(by_mailbox, {"velo_stream"}), act_queued},
      {"velo_executor_fn", "backward, over a group", with(in_use, {"velo_group"}), act_over_group},
      {"velo_executor_released_fn", "of an action", by_mailbox,
       [](scene& s) { return act_in(s, "released"); }},
      {"velo_executor_measure_fn", "of a step", by_mailbox,
       [](scene& s) { return act_in(s, "measure", true); }},
      {"velo_executor_decide_fn", "of a step", by_mailbox,
       [](scene& s) { return act_in(s, "decide", true); }},
      {"velo_executor_step_fn", "of a step", by_mailbox,
       [](scene& s) { return act_in(s, "step", true); }},
      {"velo_executor_rollback_fn", "of a step", by_mailbox,
       [](scene& s) { return act_in(s, "rollback", true); }},
      {"velo_executor_forget_fn", "of a step", by_mailbox,
       [](scene& s) { return act_in(s, "forget", true); }},
      {"velo_sublayer_fn", "of a layer", by_plan,
       [](scene& s) { return run_sublayers(s, "step of a layer", VELO_OK); }},
      {"velo_sublayers_failed_fn", "of a layer", by_plan,
       [](scene& s) { return run_sublayers(s, "failed", VELO_ERR_STATE); }, VELO_ERR_FOREIGN},
      {"velo_link_send_fn", "of the host", in_use,
       [](scene& s) { return link_in(s, "send", false); }},
      {"velo_link_receive_fn", "of the host", in_use,
       [](scene& s) { return link_in(s, "receive", false); }},
      {"velo_link_abort_fn", "of the host", in_use, cancel},
      {"velo_link_start_send_fn", "of the host", in_use,
       [](scene& s) { return link_in(s, "start_send", true); }},
      {"velo_link_finish_fn", "of the host", in_use,
       [](scene& s) { return link_in(s, "finish", true); }},
      {"velo_link_borrow_fn", "of the host", in_use,
       [](scene& s) { return link_in(s, "borrow", true); }},
      {"velo_link_give_back_fn", "of the host", in_use,
       [](scene& s) { return link_in(s, "give_back", true); }},
  };
}

}  // namespace velo::testing
