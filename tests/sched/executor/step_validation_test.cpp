// Optimizer steps that do not wait have the bits of those that do, and their failures end all
// ranks.
#include <atomic>
#include <memory>
#include <thread>

#include "sched/check/ahead.hpp"
#include "sched/schedule/csv.hpp"
#include "sched/simulate/simulate.hpp"
#include "tests/sched/executor/learner.hpp"
#include "tests/sched/executor/team.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

constexpr float unbounded = 1e30f;
constexpr int runs = 6;

// Learners of all ranks of a schedule, whose steps wait for each other or are validated late.
struct school {
  school(velo_schedule_kind kind, sizes of, bool late, float bound, by way = by::mailbox)
      : pupils(static_cast<std::size_t>(of.ranks)), is_late(late) {
    const velo_executor_validation validation = learner::validation();
    if (late) of.flags |= VELO_SCHEDULE_OPTIMIZER;
    const velo_schedule plan = schedule_of(kind, of);
    velo_schedule_info info = VELO_SCHEDULE_INFO_INIT;
    REQUIRE(velo_schedule_get_info(plan, &info) == VELO_OK);
    for (std::int32_t stage = 0; stage < info.stages; ++stage) {
      velo_stage_info about = VELO_STAGE_INFO_INIT;
      REQUIRE(velo_schedule_get_stage(plan, stage, &about) == VELO_OK);
      pupils[static_cast<std::size_t>(about.rank)].stages[stage];
    }
    all = std::make_unique<team>(
        plan, 0, 20 * second, way, [&](std::size_t rank, velo_executor_desc& desc) {
          learner& one = pupils[rank];
          one.rank = static_cast<std::int32_t>(rank);
          one.chain = kind == VELO_SCHEDULE_DUALPIPE ? info.stages / 2 : info.stages;
          one.bound = bound;
          desc.user = &one;
          desc.forward = desc.input = desc.weight = desc.backward = &learner::act;
          desc.other = nullptr;
          desc.released = nullptr;
          desc.validation = late ? &validation : nullptr;
        });
  }

  void run(int times = runs) {
    for (int i = 0; i < times; ++i) {
      for (learner& one : pupils) one.begin();
      all->run(i % 2 == 1);
      require_well();
      if (!is_late) step();
    }
    if (!is_late) return;
    all->settle();
    require_well();
  }
  void step() {
    std::vector<double> sums;
    for (learner& one : pupils) sums.push_back(one.sum_of_squares());
    const auto ranks = static_cast<std::int32_t>(pupils.size());
    const double factor = pupils[0].decide(sums.data(), ranks, ranks);
    for (learner& one : pupils)
      for (auto& [number, of] : one.stages)
        if (factor != 0) one.step(number, factor, true);
  }
  void require_well() const {
    for (std::size_t rank = 0; rank < pupils.size(); ++rank) {
      INFO("rank " << rank << ": " << all->errors[rank]);
      REQUIRE(all->status[rank] == VELO_OK);
    }
  }
  velo_executor_stats stats(std::size_t rank) const {
    velo_executor_stats made = VELO_EXECUTOR_STATS_INIT;
    REQUIRE(velo_executor_get_stats(all->executors[rank], &made) == VELO_OK);
    return made;
  }

  std::vector<learner> pupils;
  std::unique_ptr<team> all;
  bool is_late;
};

void require_same(const school& a, const school& b) {
  for (std::size_t rank = 0; rank < a.pupils.size(); ++rank) {
    INFO("rank " << rank);
    REQUIRE(a.pupils[rank].losses == b.pupils[rank].losses);
    for (const auto& [number, of] : a.pupils[rank].stages) {
      INFO("stage " << number);
      REQUIRE(of.now == b.pupils[rank].stages.at(number).now);
    }
  }
}

struct plan {
  velo_schedule_kind kind;
  sizes of;
};
const plan plans[] = {{VELO_SCHEDULE_1F1B, {1, 2}},        {VELO_SCHEDULE_1F1B, {2, 4}},
                      {VELO_SCHEDULE_1F1B, {4, 6}},        {VELO_SCHEDULE_GPIPE, {3, 5}},
                      {VELO_SCHEDULE_INTERLEAVED, {3, 6}}, {VELO_SCHEDULE_LOOPED_BFS, {2, 4}},
                      {VELO_SCHEDULE_ZBH1, {3, 6}},        {VELO_SCHEDULE_ZBH2, {4, 9}},
                      {VELO_SCHEDULE_ZBV, {3, 7}},         {VELO_SCHEDULE_VMIN, {4, 8}},
                      {VELO_SCHEDULE_DUALPIPE, {4, 8}},    {VELO_SCHEDULE_DUALPIPEV, {3, 6}},
                      {VELO_SCHEDULE_NANOPIPE, {2, 4}}};

// Runs every kind over both links. prepare(school) is called for each of the two schools before it
// runs, judge(school) for the late one afterwards.
template <class Prepare, class Judge>
void compare(float part_of_norm, Prepare&& prepare, Judge&& judge) {
  for (const plan& each : plans)
    for (const by way : {by::mailbox, by::group}) {
      INFO("kind " << each.kind << ", ranks " << each.of.ranks
                   << (way == by::group ? ", group" : ", mailbox"));
      float bound = unbounded;
      if (part_of_norm < 1) {  // of that of the first step
        school measured(each.kind, each.of, false, unbounded);
        for (learner& one : measured.pupils) one.begin();
        measured.all->run();
        double sum = 0;
        for (learner& one : measured.pupils) sum += one.sum_of_squares();
        bound = part_of_norm * static_cast<float>(std::sqrt(sum));
      }
      school waits(each.kind, each.of, false, bound), late(each.kind, each.of, true, bound, way);
      prepare(waits);
      prepare(late);
      waits.run();
      late.run();
      require_same(waits, late);
      judge(late);
    }
}

}  // namespace

TEST_CASE("steps that nothing clips stand, and are those of ranks that wait") {
  compare(
      1, [](school&) {},
      [](const school& late) {
        for (std::size_t rank = 0; rank < late.pupils.size(); ++rank) {
          const velo_executor_stats stats = late.stats(rank);
          CHECK(stats.steps == runs);
          CHECK(stats.rolled_back + stats.deferred + stats.skipped + stats.repeated == 0);
          CHECK(late.pupils[rank].rollbacks + late.pupils[rank].forgotten == 0);
        }
      });
}

TEST_CASE("a step clipped by what later ranks have is rolled back, and done as if it had waited") {
  std::int64_t rolled_back = 0;
  compare(
      0.9f, [](school&) {},
      [&](const school& late) {
        const auto last = late.pupils.size() - 1;
        CHECK(late.stats(last).rolled_back + late.stats(last).deferred == 0);
        for (std::size_t rank = 0; rank <= last; ++rank) {
          CHECK(late.stats(rank).rolled_back == late.pupils[rank].rollbacks);
          const std::int64_t settled = late.stats(rank).repeated - late.pupils[rank].forgotten;
          CHECK((settled == 0 || settled == 1));  // behind the last run there is nothing to forget
          rolled_back += late.stats(rank).rolled_back;
        }
        if (last > 0) CHECK(late.stats(0).rolled_back > 0);
      });
  CHECK(rolled_back > 40);
}

TEST_CASE("a rank whose own gradients would be clipped does no step until it knows all") {
  compare(
      0.01f, [](school&) {},
      [](const school& late) {
        const std::size_t last = late.pupils.size() - 1;
        CHECK(late.stats(0).deferred == (last > 0 ? runs : 0));
        for (const learner& one : late.pupils) CHECK(one.rollbacks == 0);
      });
}

TEST_CASE("a gradient that is not a number on one rank undoes that step on all, and no other") {
  for (const bool first : {true, false})
    compare(
        1,
        [&](school& of) {
          const int at = first ? 0 : static_cast<int>(of.pupils.size()) - 1;
          for (learner& one : of.pupils) one.poisoned = {3, at};
        },
        [&](const school& late) {
          const std::size_t last = late.pupils.size() - 1;
          for (std::size_t rank = 0; rank <= last; ++rank) {
            INFO("rank " << rank);
            const velo_executor_stats stats = late.stats(rank);
            CHECK(stats.skipped == 1);
            CHECK(stats.rolled_back == (first || rank == last ? 0 : 1));
            CHECK(stats.deferred == (first && rank != last ? 1 : 0));
          }
        });
}

TEST_CASE(
    "forwards before a step is validated are done once where it stands, and again where not") {
  school late(VELO_SCHEDULE_1F1B, {2, 4}, true, unbounded);
  for (learner& one : late.pupils) one.poisoned = {2, 1};
  late.run(3);
  // Rank 0 has two forwards before its first B, rank 1 one; those of the third run were void.
  CHECK(late.pupils[0].forwards == 3 * 4 + 2);
  CHECK(late.pupils[1].forwards == 3 * 4 + 1);
}

TEST_CASE("rows of any kind end with OPTIMIZER of their rank's stages where that is asked for") {
  for (const plan& each : plans) {
    INFO("kind " << each.kind);
    sizes with = each.of;
    with.flags |= VELO_SCHEDULE_OPTIMIZER;
    const sched::schedule bare = made(each.kind, each.of), whole = made(each.kind, with);
    CHECK(sched::check(whole).empty());
    for (std::int32_t rank = 0; rank < each.of.ranks; ++rank) {
      std::string expected = row_of(bare, rank);
      for (const std::int32_t stage : bare.stages_of(rank))
        expected += " " + std::to_string(stage) + "OPTIMIZER";
      CHECK(row_of(whole, rank) == expected);
    }
  }
  sched::costs costs;
  costs.optimizer = 2;
  sizes with{2, 4};
  with.flags = VELO_SCHEDULE_OPTIMIZER;
  const sched::schedule priced = made(VELO_SCHEDULE_1F1B, with, costs);
  std::vector<sched::stuck_rank> stuck;
  const sched::ticks scale = sched::ticks_of(costs, priced.sizes(), priced.actions());
  const auto times = sched::simulate(priced, scale, stuck);
  CHECK(times.ranks[0].last - times.ranks[0].first == 17 * scale.forward);  // 15 without
}

TEST_CASE("what a rank may do ahead of a validation needs others' beginnings alone") {
  const auto ahead = [](const std::string& rows, std::int32_t rank) {
    return sched::ahead_of(sched::read_csv(rows), rank);
  };
  const char* const loop = "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n";
  CHECK(ahead(loop, 0).cut == 3);
  CHECK(ahead(loop, 1).cut == 1);
  CHECK(ahead(loop, 1).arriving.size() == 2);
  // Rank 0's second stage comes from rank 1, whose F of it stands behind a B.
  const char* const folded = "0F0,0F1,3F0,3F1,3B0,3B1,0B0,0B1\n1F0,2F0,1F1,2B0,2F1,2B1,1B0,1B1\n";
  CHECK(ahead(folded, 0).cut == 3);
  CHECK(ahead(folded, 1).cut == 3);
  CHECK(ahead(folded, 0).arriving.empty());
  const char* const sends =
      "0F0,0SEND_F0,0F1,0RECV_B0,0SEND_F1,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n";
  CHECK(ahead(sends, 0).cut == 3);
  CHECK(ahead(sends, 1).cut == 2);  // what the next one waits for is sent too late
}

TEST_CASE("a step that fails when it is done again ends the run of all, with the first cause") {
  school late(VELO_SCHEDULE_1F1B, {3, 4}, true, unbounded);
  for (learner& one : late.pupils) one.bound = 1e-3f;  // rank 0 waits, and steps in the second run
  late.pupils[1].fails_at = {0};
  for (learner& one : late.pupils) one.begin();
  late.all->run();
  late.require_well();
  for (learner& one : late.pupils) one.begin();
  late.all->run();
  CHECK(late.all->status[1] == VELO_ERR_FOREIGN);
  CHECK(
      late.all->errors[1].find("desc.validation.step: expected VELO_OK, got VELO_ERR_IO (33) from "
                               "1OPTIMIZER of rank 1") != std::string::npos);
  for (const std::size_t rank : {0, 2}) {
    INFO(late.all->errors[rank]);
    CHECK(late.all->status[rank] == VELO_ERR_PEER);
    CHECK(late.all->culprits[rank] == 1);
  }
  late.all->settle();  // of no more use
  CHECK(late.all->status[0] == VELO_ERR_STATE);
}

TEST_CASE("cancelled between a step and its rollback all ranks end, and nothing is rolled back") {
  school late(VELO_SCHEDULE_1F1B, {2, 4}, true, unbounded);
  for (learner& one : late.pupils) one.poisoned = {1, 1};
  std::atomic<bool> began{false}, cancelled{false};
  late.pupils[0].before_forward = [&](const learner& me, const velo_executor_call&) {
    if (me.runs < 2) return;
    began = true;
    while (!cancelled) std::this_thread::yield();
  };
  for (learner& one : late.pupils) one.begin();
  late.all->run();
  late.require_well();
  std::thread canceller([&] {
    while (!began) std::this_thread::yield();
    CHECK(velo_executor_cancel(late.all->executors[0]) == VELO_OK);
    cancelled = true;
  });
  for (learner& one : late.pupils) one.begin();
  late.all->run();
  canceller.join();
  for (const std::size_t rank : {0, 1}) {
    INFO(late.all->errors[rank]);
    CHECK(late.all->status[rank] == VELO_ERR_PEER);
    CHECK(late.all->errors[rank].find("cancel") != std::string::npos);
    CHECK(late.pupils[rank].rollbacks == 0);
  }
  CHECK(late.stats(0).steps == 0);
}

TEST_CASE("validations that make no sense are refused by name") {
  team any(schedule_of(VELO_SCHEDULE_1F1B, {1, 2}));
  any.settle();
  CHECK(any.status[0] == VELO_ERR_STATE);
  const auto refuse = [&](const char* rows, velo_executor_validation with, velo_status code,
                          const char* why) {
    const live_schedule of(rows);
    velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
    desc.forward = desc.backward = &learner::act;
    desc.validation = &with;
    velo_executor made = nullptr;
    CHECK(velo_executor_create(any.contexts[0], of, &desc, &made) == code);
    INFO(last_error());
    CHECK(last_error().find(why) != std::string::npos);
  };
  const char* const good = "0F0,0B0,0OPTIMIZER\n";
  velo_executor_validation with = learner::validation();
  refuse("0F0,0B0\n", with, VELO_ERR_ARGUMENT, "none in that of rank 0");
  refuse("0F0,0OPTIMIZER,0B0\n", with, VELO_ERR_ARGUMENT, "0B0 of rank 0");
  with.rollback = nullptr;
  refuse(good, with, VELO_ERR_NULL, "desc.validation.rollback");
  with = learner::validation();
  with.state_size = 0;
  refuse(good, with, VELO_ERR_ARGUMENT, "desc.validation.state_size");
  with = learner::validation();
  with.struct_size = 8;
  refuse(good, with, VELO_ERR_STRUCT, "desc.validation");
}

TEST_CASE("a description whose size ends within its pointer to the validation is refused") {
  team any(schedule_of(VELO_SCHEDULE_1F1B, {1, 2}));
  const live_schedule of("0F0,0B0\n");
  const velo_executor_validation never = VELO_EXECUTOR_VALIDATION_INIT;
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  desc.forward = desc.backward = &learner::act;
  desc.validation = &never;
  velo_executor made = nullptr;
  for (desc.struct_size = 89; desc.struct_size < sizeof desc; ++desc.struct_size)
    CHECK(velo_executor_create(any.contexts[0], of, &desc, &made) == VELO_ERR_STRUCT);
  desc.struct_size = 88;  // of headers that had none
  CHECK(velo_executor_create(any.contexts[0], of, &desc, &made) == VELO_OK);
  velo_executor_destroy(made);
}

TEST_CASE("a decision that is none when all ranks are known is the host's failure") {
  const live_schedule of("0F0,0B0,0OPTIMIZER\n");
  learner one;
  one.chain = 1;
  team any(schedule_of(VELO_SCHEDULE_1F1B, {1, 2}));
  velo_executor_validation with = learner::validation();
  with.decide = [](void*, const void*, std::int32_t, std::int32_t, double*) -> velo_status {
    return VELO_OK;
  };
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  desc.user = &one;
  desc.forward = desc.backward = &learner::act;
  desc.validation = &with;
  velo_executor made = nullptr;
  REQUIRE(velo_executor_create(any.contexts[0], of, &desc, &made) == VELO_OK);
  velo_stream stream = nullptr;
  REQUIRE(velo_context_stream(any.contexts[0], &stream) == VELO_OK);
  one.begin();
  CHECK(velo_executor_run(stream, made) == VELO_ERR_FOREIGN);
  CHECK(last_error().find("desc.validation.decide") != std::string::npos);
  velo_executor_destroy(made);
}
