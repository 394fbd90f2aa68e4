// Plans of sublayers carried out: every step runs after all that it needs, messages travel while
// something else is computed, and a failure anywhere ends the run with nobody left waiting.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/comm/ranks.hpp"
#include "tests/random.hpp"
#include "tests/sched/sublayers/sublayer_plans.hpp"
#include "tests/stream_work.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

// Which of a context's streams compute and carry messages.
struct streams {
  explicit streams(const live_context& c, bool computes_queued, bool sends_queued)
      : compute(computes_queued ? c.new_stream() : c.inline_stream()),
        messages(sends_queued ? c.new_stream() : c.inline_stream()),
        owns{computes_queued, sends_queued} {}
  streams(const streams&) = delete;
  streams& operator=(const streams&) = delete;
  ~streams() {
    if (owns[0]) velo_stream_destroy(compute);
    if (owns[1]) velo_stream_destroy(messages);
  }

  velo_stream compute, messages;
  bool owns[2];
};

// Does `body` on a stream: at once if it is inline, else when its turn comes.
void work_on(velo_stream stream, const std::function<void()>& body) {
  if (testing::stream_of(stream).is_inline())
    body();
  else
    queue_work(stream, body);
}

// A run whose steps note what is done.
struct traced_run {
  explicit traced_run(const wish& of) : plan(of), steps(plan.steps()), done(steps.size()) {
    for (std::size_t i = 0; i < steps.size(); ++i)
      needs.push_back(plan.needs(static_cast<std::int64_t>(i)));
    spans.resize(steps.size());
  }

  std::size_t index_of(const velo_sublayer_step* step) const {
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (steps[i].kind == step->kind && steps[i].layer == step->layer &&
          steps[i].slice == step->slice)
        return i;
    return steps.size();
  }
  // Fills the fields of a description; `body(index, stream)` starts a step.
  velo_sublayers_run_desc desc() {
    velo_sublayers_run_desc all = VELO_SUBLAYERS_RUN_DESC_INIT;
    all.user = this;
    all.compute = all.message = [](void* user, velo_stream stream, const velo_sublayer_step* step) {
      auto& me = *static_cast<traced_run*>(user);
      const std::size_t i = me.index_of(step);
      ++me.started;
      return me.body(i, stream);
    };
    all.failed = [](void* user, const velo_sublayer_step* step, velo_status status) {
      auto& me = *static_cast<traced_run*>(user);
      ++me.failures;
      me.failed_at = me.index_of(step);
      me.failed_status = status;
      if (me.on_failure) me.on_failure();
    };
    all.spans = spans.data();
    return all;
  }
  call_record run(const streams& on) {
    const velo_sublayers_run_desc all = desc();
    return record_of(velo_sublayers_run(on.compute, on.messages, plan, &all));
  }

  sublayers_handle plan;
  step_list steps;
  std::vector<std::set<std::int64_t>> needs;
  std::vector<std::atomic<bool>> done;
  std::vector<velo_sublayer_span> spans;
  std::function<velo_status(std::size_t, velo_stream)> body;
  std::function<void()> on_failure;
  std::size_t started = 0, failed_at = 0;
  int failures = 0;
  velo_status failed_status = VELO_OK;
};

const wish plans[] = {
    {1, 1, VELO_SUBLAYERS_SHARED},
    {3, 2, VELO_SUBLAYERS_SHARED | VELO_SUBLAYERS_SEND, VELO_SUBLAYER_WHOLE, 1, {0, 1, 0}},
    {0, 2, VELO_SUBLAYERS_SHARED, VELO_SUBLAYER_BY_EXPERT, 3},
    {2, 0, VELO_SUBLAYERS_SHARED, VELO_SUBLAYER_BY_SEQUENCE, 2},
    {0, 2, 0, VELO_SUBLAYER_BY_SEQUENCE, 3},
    {2, 0, 0, VELO_SUBLAYER_BY_ROWS, 4},
};

}  // namespace

TEST_CASE("a step runs after all that it needs, on inline and on created streams") {
  const live_context c;
  random_source draw(41);
  for (const wish& of : plans)
    for (const bool computes_queued : {false, true})
      for (const bool sends_queued : {false, true}) {
        const streams on(c, computes_queued, sends_queued);
        traced_run run(of);
        std::atomic<int> early{0};
        std::vector<int> pauses;
        for (std::size_t i = 0; i < run.steps.size(); ++i)
          pauses.push_back(static_cast<int>(draw.below(80)));
        run.body = [&](std::size_t i, velo_stream stream) {
          work_on(stream, [&run, &early, &pauses, i] {
            for (const std::int64_t need : run.needs[i]) early += run.done[at(need)] ? 0 : 1;
            std::this_thread::sleep_for(std::chrono::microseconds(pauses[i]));
            run.done[i] = true;
          });
          return velo_status{VELO_OK};
        };
        CHECK_OK(run.run(on));
        CHECK(early == 0);
        CHECK(run.started == run.steps.size());
        CHECK(std::all_of(run.done.begin(), run.done.end(), [](const auto& one) { return !!one; }));
        std::int64_t last[2] = {0, 0};
        for (std::size_t i = 0; i < run.steps.size(); ++i) {
          CHECK(run.spans[i].begin >= last[run.steps[i].message]);
          CHECK(run.spans[i].end >= run.spans[i].begin + 1000 * pauses[i]);
          for (const std::int64_t need : run.needs[i])
            CHECK(run.spans[i].begin >= run.spans[at(need)].end);
          last[run.steps[i].message] = run.spans[i].end;
        }
        CHECK(run.failures == 0);
      }
}

TEST_CASE("both streams may be one, and a plan without messages needs no function for them") {
  const live_context c;
  const streams on(c, true, false);
  traced_run run({1, 1});
  run.body = [](std::size_t, velo_stream) { return velo_status{VELO_OK}; };
  velo_sublayers_run_desc desc = run.desc();
  CHECK(velo_sublayers_run(on.compute, on.compute, run.plan, &desc) == VELO_OK);
  CHECK(run.started == 10);
  traced_run dense({1, 1, 0, VELO_SUBLAYER_WHOLE, 1, {1}, {1}});
  dense.body = run.body;
  desc = dense.desc();
  desc.message = nullptr;
  CHECK(velo_sublayers_run(on.compute, on.messages, dense.plan, &desc) == VELO_OK);
  CHECK(dense.started == 6);
  const sublayers_handle empty({0, 0});
  CHECK(velo_sublayers_run(on.compute, on.messages, empty, &desc) == VELO_OK);
}

// Each message waits until what is computed beside it has begun, which without overlap comes later.
TEST_CASE("messages of a pair travel while the other direction computes") {
  const live_context c;
  const streams on(c, false, true);
  traced_run run({2, 2});
  std::vector<std::atomic<bool>> begun(run.steps.size());
  std::atomic<int> alone{0};
  run.body = [&](std::size_t i, velo_stream stream) {
    if (run.steps[i].message == 0) {
      begun[i] = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return velo_status{VELO_OK};
    }
    std::size_t beside = i;
    while (beside < run.steps.size() && run.steps[beside].message != 0) ++beside;
    if (beside == run.steps.size()) return velo_status{VELO_OK};
    queue_work(stream, [&begun, &alone, beside] {
      for (int tries = 0; tries < 20000 && !begun[beside]; ++tries)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      alone += begun[beside] ? 0 : 1;
    });
    return velo_status{VELO_OK};
  };
  CHECK_OK(run.run(on));
  CHECK(alone == 0);
}

TEST_CASE("a function that fails or throws ends the run, is reported once, and streams go on") {
  const live_context c;
  for (const wish& of : plans)
    for (const bool queued : {false, true}) {
      const streams on(c, queued, true);
      const std::size_t count = traced_run(of).steps.size();
      for (std::size_t fault = 0; fault < count; ++fault) {
        traced_run run(of);
        run.body = [&](std::size_t i, velo_stream stream) {
          if (i == fault && fault % 3 == 0) throw std::runtime_error("a host's exception");
          if (i == fault) return velo_status{VELO_ERR_MEMORY};
          work_on(stream, [&run, i] { run.done[i] = true; });
          return velo_status{VELO_OK};
        };
        const call_record record = run.run(on);
        CHECK(record.code == VELO_ERR_FOREIGN);
        CHECK(record.argument == (run.steps[fault].message != 0 ? "desc.message" : "desc.compute"));
        CHECK(run.started == fault + 1);
        CHECK(run.failures == 1);
        CHECK(run.failed_at == fault);
        CHECK(run.failed_status == VELO_ERR_FOREIGN);
        for (std::size_t i = 0; i < count; ++i) CHECK(run.done[i] == (i < fault));
        CHECK(run.spans[fault].end == -1);
        CHECK(velo_stream_synchronize(on.compute) == VELO_OK);
        CHECK(velo_stream_synchronize(on.messages) == VELO_OK);
      }
    }
}

TEST_CASE("queued work that fails ends the run with its failure") {
  const live_context c;
  for (const wish& of : plans)
    for (const bool queued : {false, true}) {
      const std::size_t count = traced_run(of).steps.size();
      for (std::size_t fault = 0; fault < count; ++fault) {
        const streams on(c, queued, true);
        traced_run run(of);
        if (!queued && run.steps[fault].message == 0) continue;
        run.body = [&](std::size_t i, velo_stream stream) {
          if (i == fault) queue_failure(stream);
          return velo_status{VELO_OK};
        };
        const call_record record = run.run(on);
        CHECK(record.code == VELO_ERR_IO);
        CHECK(record.expected == "a disk");
        CHECK(run.failures == 1);
        CHECK(run.failed_status == VELO_ERR_IO);
        CHECK(run.failed_at >= fault);
        velo_stream_clear(on.compute);
        velo_stream_clear(on.messages);
        CHECK(velo_stream_synchronize(on.compute) == VELO_OK);
        CHECK(velo_stream_synchronize(on.messages) == VELO_OK);
      }
    }
}

// Rank 1 fails where rank 0 waits for its message.
TEST_CASE("a rank that fails ends its group, so that no other waits for its messages") {
  for (const std::size_t fault : {std::size_t{1}, std::size_t{4}, std::size_t{6}}) {
    INFO("step " << fault);
    const local_ranks pair(2, group_desc(600000));
    const std::vector<call_record> records = pair.run([&](const rank_of_group& me) {
      velo_stream messages = nullptr;
      velo_stream_create(me.context, &messages);
      struct one_rank {
        const rank_of_group& me;
        std::size_t fault, started = 0;
        std::vector<float> sum = std::vector<float>(100, 1.0f);
      } state{me, fault};
      velo_sublayers plan = nullptr;
      velo_sublayers_desc of = VELO_SUBLAYERS_DESC_INIT;
      of.forward_layers = of.backward_layers = 1;
      velo_sublayers_create(&of, &plan);
      velo_sublayers_run_desc desc = VELO_SUBLAYERS_RUN_DESC_INIT;
      desc.user = &state;
      desc.compute = desc.message = [](void* user, velo_stream on,
                                       const velo_sublayer_step* step) -> velo_status {
        auto& state = *static_cast<one_rank*>(user);
        if (state.started++ == state.fault && state.me.rank == 1) return VELO_ERR_IO;
        if (step->message == 0) return VELO_OK;
        return reduce_in_place(on, state.me.group, state.sum);
      };
      desc.failed = [](void* user, const velo_sublayer_step*, velo_status) {
        velo_group_abort(static_cast<one_rank*>(user)->me.group);
      };
      call_record record = record_of(velo_sublayers_run(me.stream, messages, plan, &desc));
      velo_sublayers_destroy(plan);
      velo_stream_destroy(messages);
      return record;
    });
    // The failure is of queued work, or of the function that started the next message.
    INFO(records[0]);
    CHECK((records[0].code == VELO_ERR_PEER || records[0].code == VELO_ERR_FOREIGN));
    CHECK(records[1].code == VELO_ERR_FOREIGN);
  }
}

TEST_CASE("a run refuses functions that are missing, and streams of two contexts") {
  const live_context c, other;
  const streams on(c, false, false);
  traced_run run({1, 0});
  run.body = [](std::size_t, velo_stream) { return velo_status{VELO_OK}; };
  const velo_sublayers_run_desc valid = run.desc();
  const auto refused = [&](const velo_sublayers_run_desc* desc, velo_stream messages) {
    return record_of(velo_sublayers_run(on.compute, messages, run.plan, desc));
  };
  velo_sublayers_run_desc wrong = valid;
  wrong.compute = nullptr;
  CHECK_REFUSED(refused(&wrong, on.messages), VELO_ERR_NULL, "desc.compute");
  wrong = valid, wrong.message = nullptr;
  CHECK_REFUSED(refused(&wrong, on.messages), VELO_ERR_NULL, "desc.message");
  CHECK_REFUSED(refused(nullptr, on.messages), VELO_ERR_NULL, "desc");
  CHECK_REFUSED(refused(&valid, nullptr), VELO_ERR_NULL, "messages");
  CHECK_REFUSED(refused(&valid, other.inline_stream()), VELO_ERR_ARGUMENT, "messages");
  CHECK(run.started == 0);
}

TEST_CASE("a plan cannot be destroyed by its own run") {
  const live_context c;
  const streams on(c, false, false);
  traced_run run({1, 0});
  run.body = [&](std::size_t, velo_stream) {
    velo_sublayers_destroy(run.plan);
    return velo_status{VELO_OK};
  };
  CHECK_OK(run.run(on));
  CHECK(run.plan.info().steps == 4);
}
