// Executors over the messages of a group: ranks as threads, and ranks as processes.
#include <cstdlib>

#include "comm/processes.hpp"
#include "tests/sched/executor/team.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

const std::pair<velo_schedule_kind, sizes> kinds[] = {{VELO_SCHEDULE_GPIPE, {3, 9}},
                                                      {VELO_SCHEDULE_1F1B, {4, 13}},
                                                      {VELO_SCHEDULE_INTERLEAVED, {3, 11, 4, 4}},
                                                      {VELO_SCHEDULE_ZBV, {3, 8}},
                                                      {VELO_SCHEDULE_DUALPIPE, {4, 8}}};

// Longer than what lies between two ranks, so that a send waits for its receive.
constexpr std::int64_t long_length = 1 << 15;

}  // namespace

TEST_CASE("over a group every rank is given what the others made") {
  for (const auto& [kind, of] : kinds) {
    INFO("kind " << kind);
    team all(schedule_of(kind, of), 0, 20 * second, by::group);
    for (int run = 0; run < 2; ++run) {
      all.run();
      require_all_went_well(all);
    }
  }
}

TEST_CASE("sends of one rank's row are those of the schedule for all ranks") {
  // Rank 0 sends micro-batch 1 behind the gradient of 0, so rank 1 may not wait for it before.
  team all(schedule_of("0F0,0SEND_F0,0F1,0B0,0SEND_F1,0B1\n1F0,1B0,1F1,1B1\n"), 0, 5 * second,
           by::group);
  all.run();
  require_all_went_well(all);
}

TEST_CASE("ranks that are processes carry out a schedule, messages of any length") {
  for (const auto& [kind, of] : kinds)
    for (const std::int64_t scale : {std::int64_t{1}, long_length}) {
      INFO("kind " << kind << ", scale " << scale);
      processes ranks;
      ranks.start_all(of.ranks, VELO_GROUP_DESC_INIT,
                      [which = kind, how = of, scale](const rank_of_group& me) {
                        const velo_schedule_desc desc = desc_of(which, how);
                        velo_schedule order = nullptr;
                        velo_schedule_create(&desc, &order);
                        ending result;
                        {
                          rank_part mine(order, me.context, me.group, scale);
                          result = ending_of(velo_executor_run(me.stream, mine.executor));
                          result.value = mine.went_well() ? 1 : 0;
                        }
                        velo_schedule_destroy(order);
                        return result;
                      });
      for (const ending& each : ranks.wait()) {
        CHECK_OK(each);
        CHECK(each.value == 1);
      }
    }
}

TEST_CASE("a process that dies in its part ends the run of the others") {
  processes ranks;
  ranks.start_all(3, VELO_GROUP_DESC_INIT, [](const rank_of_group& me) {
    const velo_schedule_desc desc = desc_of(VELO_SCHEDULE_1F1B, {3, 6});
    velo_schedule order = nullptr;
    velo_schedule_create(&desc, &order);
    rank_part mine(order, me.context, me.group, 1);
    mine.model.before = [&](const velo_executor_call& call) -> velo_status {
      if (me.rank == 2 && call.action.microbatch == 2) _exit(7);
      return VELO_OK;
    };
    return ending_of(velo_executor_run(me.stream, mine.executor));
  });
  const std::vector<ending> all = ranks.wait();
  for (const std::size_t rank : {0, 1}) {
    INFO(all[rank]);
    CHECK(all[rank].code == VELO_ERR_PEER);
    CHECK(all[rank].rank == 2);
  }
}
