// Executors on threads of one process: delivery and failures, over a mailbox or a group.
#include <atomic>
#include <thread>

#include "tests/sched/executor/team.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("every rank is given what the others made, run after run") {
  const std::pair<velo_schedule_kind, sizes> kinds[] = {{VELO_SCHEDULE_GPIPE, {3, 9}},
                                                        {VELO_SCHEDULE_1F1B, {1, 4}},
                                                        {VELO_SCHEDULE_1F1B, {4, 13}},
                                                        {VELO_SCHEDULE_INTERLEAVED, {2, 8}},
                                                        {VELO_SCHEDULE_INTERLEAVED, {3, 11, 4, 4}},
                                                        {VELO_SCHEDULE_ZB1P, {3, 9, 2}},
                                                        {VELO_SCHEDULE_ZBV, {3, 8}},
                                                        {VELO_SCHEDULE_DUALPIPE, {4, 8}},
                                                        {VELO_SCHEDULE_DUALPIPEV, {3, 6}}};
  for (const auto& [kind, of] : kinds) {
    INFO("kind " << kind);
    team all(schedule_of(kind, of));
    for (const bool queued : {false, true}) {
      all.run(queued);
      require_all_went_well(all);
    }
    int forwards = 0, done = 0;
    for (const rank_model& one : all.models) {
      forwards += one.calls[VELO_ACTION_F];
      done += one.calls[VELO_ACTION_B] + one.calls[VELO_ACTION_W];
    }
    const int halves = kind == VELO_SCHEDULE_DUALPIPE ? 2 : 1;
    CHECK(forwards == 2 * all.models[0].stages * of.microbatches / halves);
    CHECK(done == forwards);
    for (velo_executor one : all.executors) velo_executor_destroy(one);
    all.executors.clear();
    for (velo_context one : all.contexts) {
      velo_context_stats stats = VELO_CONTEXT_STATS_INIT;
      CHECK(velo_context_get_stats(one, &stats) == VELO_OK);
      CHECK(stats.bytes_allocated == all.bytes_before);
    }
  }
}

TEST_CASE("rows of any action are run: I and W apart, V-shaped, fused, with SEND and RECV") {
  for (const char* rows : {"0F0,0F1,3F0,3F1,3I0,3I1,3W0,0I0,0I1,3W1,0W0,0W1\n"
                           "1F0,2F0,1F1,2F1,2I0,1I0,2B1,1I1,2W0,1W0,1W1\n",
                           "0F0,0UNSHARD,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n",
                           "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                           "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"}) {
    INFO(rows);
    // An F of micro-batch 1 at once with B of 0 waits for rank 1, which waits for nobody.
    team all(schedule_of(rows));
    all.run();
    require_all_went_well(all);
  }
}

TEST_CASE("a failure of one rank ends the run of all, with the first cause") {
  for (const by way : {by::mailbox, by::group}) {
    team all(schedule_of(VELO_SCHEDULE_1F1B, {3, 8}), 0, 20 * second, way);
    all.models[1].before = [](const velo_executor_call& call) {
      return call.action.kind == VELO_ACTION_B && call.action.microbatch == 2 ? VELO_ERR_IO
                                                                              : VELO_OK;
    };
    all.run();
    CHECK(all.status[1] == VELO_ERR_FOREIGN);
    CHECK(all.errors[1].find("desc.backward: expected VELO_OK, got VELO_ERR_IO (33) from 1B2 of "
                             "rank 1") != std::string::npos);
    for (const std::size_t rank : {0, 2})
      check_ended(all, rank, 1, "VELO_ERR_IO (33) from 1B2 of rank 1");
    all.run();  // of no more use
    CHECK(all.status[0] == VELO_ERR_STATE);
  }
}

TEST_CASE("why a function failed in a call of velo's is reported, and no failure from before") {
  team all(schedule_of(VELO_SCHEDULE_1F1B, {1, 2}));
  all.models[0].before = [&](const velo_executor_call&) -> velo_status {
    return velo_config_set(all.contexts[0], "threads", "many");
  };
  all.run();
  CHECK(all.errors[0].find("VELO_ERR_ARGUMENT (4) from 0F0 of rank 0: velo_config_set: ") !=
        std::string::npos);
  velo_stream stream = nullptr;
  REQUIRE(velo_context_stream(all.contexts[0], &stream) == VELO_OK);
  REQUIRE(velo_config_set(all.contexts[0], "threads", "many") == VELO_ERR_ARGUMENT);
  for (const velo_status returned : {velo_status{VELO_ERR_ARGUMENT}, velo_status{-7}}) {
    all.models[0].before = [=](const velo_executor_call&) { return returned; };
    REQUIRE(velo_executor_run(stream, all.executors[0]) == VELO_ERR_FOREIGN);
    const call_record record = last_record();
    CHECK(record.got ==
          (returned == -7 ? "-7 from 0F0 of rank 0" : "VELO_ERR_ARGUMENT (4) from 0F0 of rank 0"));
    CHECK(record.cause.empty());
  }
}

TEST_CASE("an exception of a function is its rank's failure") {
  team all(schedule_of(VELO_SCHEDULE_1F1B, {2, 3}));
  all.models[0].before = [](const velo_executor_call& call) -> velo_status {
    if (call.action.microbatch == 1) throw std::runtime_error("out of tokens");
    return VELO_OK;
  };
  all.run();
  CHECK(all.status[0] == VELO_ERR_FOREIGN);
  CHECK(all.errors[0].find("out of tokens") != std::string::npos);
  CHECK(all.status[1] == VELO_ERR_PEER);
}

TEST_CASE("a run is cancelled from another thread") {
  for (const by way : {by::mailbox, by::group}) {
    team all(schedule_of(VELO_SCHEDULE_1F1B, {2, 4}), 0, 20 * second, way);
    std::atomic<bool> began{false}, cancelled{false};
    all.models[1].before = [&](const velo_executor_call& call) {
      if (call.action.microbatch == 1) {
        began = true;
        while (!cancelled) std::this_thread::yield();
      }
      return VELO_OK;
    };
    std::thread canceller([&] {
      while (!began) std::this_thread::yield();
      CHECK(velo_executor_cancel(all.executors[0]) == VELO_OK);
      cancelled = true;
    });
    all.run();
    canceller.join();
    for (const std::size_t rank : {0, 1}) check_ended(all, rank, 0, "cancel");
  }
}

TEST_CASE("a rank that waits for ever says for whom") {
  team all(schedule_of("0F0,0B0\n1F0,1B0\n"), 0, second / 50);
  velo_stream stream = nullptr;
  REQUIRE(velo_context_stream(all.contexts[1], &stream) == VELO_OK);
  CHECK(velo_executor_run(stream, all.executors[1]) == VELO_ERR_TIMEOUT);
  CHECK(last_error().find("rank 1 waited") != std::string::npos);
  REQUIRE(velo_context_stream(all.contexts[0], &stream) == VELO_OK);
  CHECK(velo_executor_run(stream, all.executors[0]) == VELO_ERR_PEER);
}

TEST_CASE("a row that uses what it makes later is refused where it stands") {
  team all(schedule_of("1F0,0F0,0B0,1B0\n2F0,2B0\n"));
  all.run();
  CHECK(all.status[0] == VELO_ERR_STATE);
  CHECK(all.errors[0].find("makes what 1F0 needs") != std::string::npos);
}

namespace {

struct odd_outputs {
  velo_status refusal;
  const char* expected;
  void (*change)(velo_executor_call& call, velo_tensor& whole);  // a tensor of 2 x 2 to begin with
};

const std::int64_t across[] = {1, 2}, endless[] = {INT64_MAX / 4, 1};
const odd_outputs odd[] = {
    {VELO_ERR_LAYOUT, "outputs[0]",
     [](velo_executor_call& call, velo_tensor& whole) {
       whole.strides = across;
       call.outputs[call.output_count++] = whole;
     }},
    {VELO_ERR_SHAPE, "outputs[0].shape: expected a tensor of at most 2^40 bytes",
     [](velo_executor_call& call, velo_tensor& whole) {
       whole.shape = endless;
       call.outputs[call.output_count++] = whole;
     }},
    {VELO_ERR_DEVICE, "outputs[0]",
     [](velo_executor_call& call, velo_tensor& whole) {
       whole.device.type = 2;
       call.outputs[call.output_count++] = whole;
     }},
    {VELO_ERR_FOREIGN, "got 2, with outputs[1] not filled in",
     [](velo_executor_call& call, velo_tensor& whole) {
       call.outputs[0] = whole;
       call.output_count = 2;
     }},
    {VELO_ERR_NULL, "outputs[0].data",
     [](velo_executor_call& call, velo_tensor& whole) {
       whole.data = nullptr;
       call.outputs[call.output_count++] = whole;
     }},
    {VELO_ERR_FOREIGN, "call.output_count: expected 0 to 16, got -1",
     [](velo_executor_call& call, velo_tensor&) { call.output_count = -1; }},
    {VELO_ERR_FOREIGN, "call.output_count: expected 0 to 16, got 32",
     [](velo_executor_call& call, velo_tensor& whole) {
       for (int i = 0; i < 32; ++i) call.outputs[call.output_count++] = whole;
     }},
    {VELO_ERR_FOREIGN,
     "call.output_count: expected the number of outputs that are filled in, got 0",
     [](velo_executor_call& call, velo_tensor& whole) { call.outputs[0] = whole; }},
    {VELO_ERR_FOREIGN, "got 1, with outputs[1] filled in",
     [](velo_executor_call& call, velo_tensor& whole) {
       call.outputs[0] = call.outputs[1] = whole;
       call.output_count = 1;
     }},
};

}  // namespace

TEST_CASE("outputs that cannot cross, or are miscounted, are refused by name") {
  static const std::int64_t shape[] = {2, 2};
  static float values[4];
  for (const odd_outputs& one : odd) {
    INFO(one.expected);
    team pair(schedule_of("0F0,0B0\n1F0,1B0\n"), 0, second, by::mailbox,
              [&](std::size_t rank, velo_executor_desc& desc) {
                if (rank != 0) return;
                desc.user = const_cast<odd_outputs*>(&one);
                desc.forward = [](void* user, velo_executor_call* call) -> velo_status {
                  velo_tensor whole = view_of(values, f32, shape);
                  static_cast<odd_outputs*>(user)->change(*call, whole);
                  return VELO_OK;
                };
                desc.released = nullptr;
              });
    pair.run();
    CHECK(pair.status[0] == one.refusal);
    CHECK(pair.errors[0].find(one.expected) != std::string::npos);
    CHECK(pair.status[1] == VELO_ERR_PEER);
    CHECK(pair.models[1].calls[VELO_ACTION_F] == 0);
  }
}

TEST_CASE("outputs that go nowhere are not looked at") {
  team alone(schedule_of("0F0,0B0\n"));
  alone.models[0].before = [](const velo_executor_call& call) -> velo_status {
    if (call.action.kind == VELO_ACTION_F) call.outputs[0].dtype.bits = 8;
    return VELO_OK;
  };
  alone.run();
  CHECK(alone.status[0] == VELO_OK);
}

TEST_CASE("a recorded run becomes the timeline of all ranks") {
  team all(schedule_of(VELO_SCHEDULE_1F1B, {3, 6}), VELO_EXECUTOR_RECORD);
  for (rank_model& one : all.models)
    one.before = [](const velo_executor_call&) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      return VELO_OK;
    };
  all.run();
  require_all_went_well(all);
  std::vector<velo_timeline> seen(3);
  on_threads(
      3, [&](std::size_t rank) { velo_executor_get_timeline(all.executors[rank], &seen[rank]); });
  std::string first;
  for (velo_timeline one : seen) {
    REQUIRE(one != nullptr);
    velo_timeline_stats stats = VELO_TIMELINE_STATS_INIT;
    REQUIRE(velo_timeline_get_stats(one, &stats) == VELO_OK);
    CHECK(stats.work >= 12 * 200e3);
    CHECK(stats.makespan >= 16 * 200e3);  // three ranks of which the last begins two later
    velo_timeline_rank rank = VELO_TIMELINE_RANK_INIT;
    REQUIRE(velo_timeline_get_rank(one, 0, &rank) == VELO_OK);
    CHECK(rank.peak_activations == 3);
    CHECK(rank.first == 0);
    std::vector<char> text(1 << 16);
    REQUIRE(velo_timeline_write(one, VELO_TIMELINE_TRACE, text.data(), text.size(), nullptr) ==
            VELO_OK);
    if (first.empty()) first = text.data();
    CHECK(first == text.data());
    velo_timeline_destroy(one);
  }
}

TEST_CASE("a timeline wants a run that all ranks recorded") {
  team all(schedule_of(VELO_SCHEDULE_1F1B, {2, 2}));
  all.run();
  std::vector<velo_status> status(2);
  on_threads(2, [&](std::size_t rank) {
    velo_timeline none = nullptr;
    status[rank] = velo_executor_get_timeline(all.executors[rank], &none);
  });
  CHECK(status == std::vector<velo_status>{VELO_ERR_STATE, VELO_ERR_STATE});
}

TEST_CASE("executors and mailboxes that make no sense are refused by name") {
  velo_mailbox none = nullptr;
  CHECK(velo_mailbox_create(0, second, &none) == VELO_ERR_ARGUMENT);
  CHECK(velo_mailbox_create(257, second, &none) == VELO_ERR_ARGUMENT);
  CHECK(velo_mailbox_create(2, 0, &none) == VELO_ERR_ARGUMENT);
  CHECK(none == nullptr);

  team all(schedule_of(VELO_SCHEDULE_1F1B, {2, 2}));
  const live_schedule of("0F0,0I0,0W0\n1F0,1B0\n");
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  velo_executor made = nullptr;
  desc.forward = desc.input = &act;
  CHECK(velo_executor_create(all.contexts[0], of, &desc, &made) == VELO_ERR_NULL);  // no link
  velo_link link = VELO_LINK_INIT;
  desc.link = &link;
  CHECK(velo_executor_create(all.contexts[0], of, &desc, &made) == VELO_ERR_NULL);
  CHECK(last_error().find("desc.link.send") != std::string::npos);
  link.flags = 2;
  CHECK(velo_executor_create(all.contexts[0], of, &desc, &made) == VELO_ERR_ARGUMENT);
  link.flags = 0;
  link.send = [](void*, std::int32_t, const void*, std::uint64_t) -> velo_status { return 0; };
  link.receive = [](void*, std::int32_t, void*, std::uint64_t) -> velo_status { return 0; };
  CHECK(velo_executor_create(all.contexts[0], of, &desc, &made) == VELO_ERR_NULL);
  CHECK(last_error().find("desc.weight: expected a function: the row has 0W0") !=
        std::string::npos);
  desc.weight = &act;
  desc.rank = 2;
  CHECK(velo_executor_create(all.contexts[0], of, &desc, &made) == VELO_ERR_ARGUMENT);
  desc.rank = 0;
  desc.flags = 2;
  CHECK(velo_executor_create(all.contexts[0], of, &desc, &made) == VELO_ERR_ARGUMENT);
  CHECK(made == nullptr);

  velo_stream other = nullptr;
  REQUIRE(velo_context_stream(all.contexts[1], &other) == VELO_OK);
  CHECK(velo_executor_run(other, all.executors[0]) == VELO_ERR_ARGUMENT);
}
