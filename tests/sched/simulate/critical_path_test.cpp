// The critical path and the memory of a timeline: sums that must hold for every kind, and examples
// by hand.
#include "sched/simulate/critical_path.hpp"

#include "sched/schedule/csv.hpp"
#include "sched/simulate/memory_use.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;
using sched::critical_path;
using sched::memory_amounts;
using sched::memory_use;
using sched::path_step;

namespace {

std::string text_of(const std::vector<path_step>& path) {
  std::string all;
  for (const path_step& step : path)
    all += (all.empty() ? "" : " ") + sched::text_of(step.done) + "@" +
           std::to_string(step.when.begin);
  return all;
}

// Costs for everything that an action may wait for.
sched::costs slow() {
  sched::costs given{1, 1.5, 0.5, -1, 0.25};
  given.transfer = 0.5;
  given.offload = 1.75, given.reload = 2;
  given.gather = 3, given.reduce = 4;
  given.optimizer = 1;
  return given;
}

memory_amounts peak_of(const sched::timeline& of, std::int32_t rank) {
  return memory_use(of, *sched::spans_of(of)).peak(rank);
}

}  // namespace

TEST_CASE("lengths and waits of a critical path add up to the makespan, for every kind") {
  for (const sched::costs& given : {sched::costs{}, sched::costs{1, 1.2, 0.8, -1, 0.1}, slow()}) {
    int count = 0;
    for_each_schedule(5, [&](const sched::schedule& order) {
      const sched::timeline times = timed(order, given);
      const std::vector<path_step> path = critical_path(times);
      REQUIRE_FALSE(path.empty());
      std::int64_t sum = 0;
      bool right = path.front().cause == VELO_PATH_START && path.front().when.begin == 0;
      for (std::size_t i = 0; i < path.size(); ++i) {
        const path_step& step = path[i];
        sum += step.wait + step.when.end - step.when.begin;
        if (i == 0) continue;
        const bool same_rank = path[i - 1].rank == step.rank;
        right = right && step.when.begin - step.wait == path[i - 1].when.end;
        right = right && same_rank == (step.cause != VELO_PATH_MESSAGE);
        // A rank that is free begins at once.
        if (step.cause != VELO_PATH_MESSAGE) right = right && step.wait == 0;
      }
      if (!right) FAIL(text_of(path));
      CHECK(sum == times.times.makespan());
      ++count;
    });
    CHECK(count > 500);
  }
}

TEST_CASE("a critical path goes by messages, copies and collectives") {
  // Rank 1 waits for both forwards, which queue on the link: 1, then 3 and 5.
  sched::costs given;
  given.transfer = 2;
  CHECK(text_of(critical_path(timed(made(VELO_SCHEDULE_GPIPE, {2, 2}), given))) ==
        "0F0@0 1F1@5 1B0@6 0B0@10 0B1@12");
  const auto cause = [&](const char* rows, std::size_t step, const sched::costs& costs) {
    return critical_path(timed(sched::read_csv(rows), costs))[step].cause;
  };
  sched::costs copying;
  copying.offload = 1, copying.reload = 5;
  const char* copied = "0F0,0OFFLOAD0,0RELOAD0,0B0\n";
  CHECK(cause(copied, 1, copying) == VELO_PATH_RANK);
  CHECK(cause(copied, 2, copying) == VELO_PATH_COPY);
  CHECK(cause(copied, 3, copying) == VELO_PATH_COPY);
  sched::costs gathering;
  gathering.gather = 7;
  CHECK(cause("0UNSHARD,0F0,0B0\n", 1, gathering) == VELO_PATH_COLLECTIVE);
  CHECK(critical_path(timed(sched::schedule{})).empty());
}

TEST_CASE("of a measured timeline the step before is what ended last of all that an action needs") {
  sched::timeline times = timed(sched::read_csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"));
  times.measured = std::make_shared<const sched::spans>(sched::spans{
      {{2, 10}, {10, 20}, {61, 70}, {70, 80}}, {{13, 30}, {31, 60}, {60, 65}, {65, 69}}});
  times.times.ranks = {{2, 80, 37, 2}, {13, 69, 55, 1}};
  const std::vector<path_step> path = critical_path(times);
  CHECK(text_of(path) == "0F0@2 1F0@13 1B0@31 0B0@61 0B1@70");
  CHECK(path[0].wait == 2);
  CHECK(path[1].wait == 3);
  CHECK(path[2].wait == 1);
  CHECK(path[3].cause == VELO_PATH_MESSAGE);
}

TEST_CASE("activations by category are those that the simulator counts, for every kind") {
  for_each_schedule(5, [&](const sched::schedule& order) {
    const sched::timeline times = timed(order, slow());
    const auto spans = sched::spans_of(times);
    memory_use use(times, *spans);
    for (std::int32_t rank = 0; rank < order.sizes().ranks; ++rank) {
      const auto changes = use.changes(rank);
      double most = 0, host = 0;
      for (const memory_amounts& now : changes) {
        most = std::max(most, now.of[sched::activations]);
        host = std::max(host, now.of[sched::offloaded]);
        for (const double amount : now.of)
          if (amount < 0) FAIL("a negative amount");
      }
      const sched::rank_times& counted = times.times.ranks[static_cast<std::size_t>(rank)];
      CHECK(most == times.in_microbatches(counted.peak));
      CHECK(host == times.in_microbatches(counted.host_peak));
      for (const sched::category c : {sched::activations, sched::messages, sched::offloaded})
        CHECK(changes.back().of[c] == 0);
    }
  });
}

TEST_CASE("memory is itemized when the device holds most") {
  sched::costs given;
  given.sizes = {2, 4, 12, 1.5, 0.5};
  const memory_amounts both = peak_of(timed(made(VELO_SCHEDULE_1F1B, {2, 2}), given), 0);
  CHECK(both.time == 4);  // 0B0 begins, with the gradient that it takes
  CHECK(both.total() == 2 + 4 + 12 + 2 * 1.5 + 0.5);
  // A rank of two chunks has both halves, and half of the activations of each.
  const memory_amounts halves = peak_of(timed(made(VELO_SCHEDULE_ZBV, {2, 4}), given), 1);
  CHECK(halves.of[sched::weights] == 2);
  CHECK(halves.of[sched::optimizer_states] == 12);
  // DualPipe keeps a stage of both directions.
  CHECK(peak_of(timed(made(VELO_SCHEDULE_DUALPIPE, {2, 4}), given), 0).of[sched::weights] == 4);
  // Stages count their shares.
  given.shares = {3, 1};
  const sched::timeline uneven = timed(made(VELO_SCHEDULE_1F1B, {2, 2}), given);
  CHECK(peak_of(uneven, 0).of[sched::weights] == 3);
  CHECK(peak_of(uneven, 1).of[sched::weights] == 1);
  // Gradients go with the update, gathered weights with RESHARD.
  given.shares = {};
  const sched::timeline updated =
      timed(sched::read_csv("0UNSHARD,0F0,0B0,0RESHARD,0OPTIMIZER\n"), given);
  const auto spans = sched::spans_of(updated);
  const auto changes = memory_use(updated, *spans).changes(0);
  CHECK(changes.front().of[sched::weights] == 0);
  CHECK(changes.back().of[sched::weights] == 0);
  CHECK(changes.back().of[sched::gradients] == 0);
  CHECK(peak_of(updated, 0).of[sched::gradients] == 4);
  CHECK(peak_of(updated, 0).of[sched::weights] == 2);
}

TEST_CASE("texts have the critical path, and memory where sizes are given") {
  sched::costs given{1, 1, 1, -1, 0.5};
  const sched::schedule order = made(VELO_SCHEDULE_1F1B, {2, 2});
  const std::string plain = write_summary(timed(order, given));
  CHECK(plain.find("critical path: 6 actions that take 9, waits for message 1\n") !=
        std::string::npos);
  CHECK(plain.find("most memory") == std::string::npos);
  given.sizes = {2, 4, 12, 1.5, 0.5};
  const sched::timeline sized = timed(order, given);
  CHECK(write_summary(sized).find("\n 0: 21.5 at 5, weights 2, gradients 4, optimizer 12, "
                                  "activations 3, messages 0.5, offloaded 0\n") !=
        std::string::npos);
  CHECK(draw_svg(sized).find(">most memory<") != std::string::npos);
  CHECK(draw_svg(sized).find("<title>gradients: 4</title>") != std::string::npos);
  const std::string trace = write_trace(sized);
  const char* const counter =
      R"({"name": "memory", "ph": "C", "pid": 0, "tid": 0, "ts": 5, "args": {"weights": 2, )"
      R"("gradients": 4, "optimizer": 12, "activations": 3, "messages": 0.5, "offloaded": 0}})";
  CHECK(trace.find(counter) != std::string::npos);
  CHECK(trace.find(R"("args": {"name": "critical path"})") != std::string::npos);
}
