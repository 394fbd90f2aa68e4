// Reading a row block by block: every action, wherever the reader starts and whichever are passed
// without being read.
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("a row reader gives the next action, whichever were passed unread") {
  const sched::schedule pipeline = made(VELO_SCHEDULE_1F1B, {2, 200});
  const std::int64_t length = pipeline.length(0);
  REQUIRE(length == 400);
  for (const std::int64_t start : {0, 1, 63, 64, 399}) {
    for (const std::int64_t step : {1, 2, 63, 64, 65, 130}) {
      INFO("from " << start << ", each " << step << ".");
      for (sched::row_reader row(pipeline, 0, start); !row.done(); row.pass()) {
        if ((row.index() - start) % step != 0) continue;
        sched::action wanted{};
        pipeline.read(0, row.index(), 1, &wanted);
        REQUIRE(sched::text_of(row.next()) == sched::text_of(wanted));
      }
    }
  }
}
