// Every collective of every dtype and reduction against plain loops, bit for bit: on threads and on
// processes, one to eight of them. VELO_SWEEP: all numbers of ranks, and sizes up to 2^20.
#include "comm/collective/sweep.hpp"

#include "comm/processes.hpp"

using namespace velo::testing;

namespace {

velo_group_desc small_slots() {
  velo_group_desc desc = group_desc(60000);
  desc.buffer = 32 << 10;
  return desc;
}

}  // namespace

TEST_CASE("threads: every collective, dtype and reduction is what plain loops give") {
  for (const int count : sweep::rank_counts()) {
    INFO(count << " ranks");
    const local_ranks ranks(count, small_slots());
    std::vector<std::string> first(static_cast<std::size_t>(count));
    const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
      sweep of({ranks.context(me.rank), me.stream, me.group, me.rank, count, me.rank % 2 == 1});
      of.run();
      first[at(me.rank)] = of.first();
      return velo_status{of.wrong() == 0 ? VELO_OK : VELO_ERR_INTERNAL};
    });
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      INFO("rank " << rank << ": " << first[rank]);
      CHECK(all[rank].code == VELO_OK);
    }
  }
}

TEST_CASE("processes: every collective, dtype and reduction is what plain loops give") {
  for (const int count : sweep::rank_counts()) {
    INFO(count << " ranks");
    processes ranks;
    ranks.start_all(count, small_slots(), [](const rank_of_group& me) {
      sweep of({me.context, me.stream, me.group, me.rank, me.size, me.rank % 2 == 0});
      of.run();
      ending all = ending_of(VELO_OK, of.wrong());
      all.got = of.first();
      return all;
    });
    for (const ending& one : ranks.wait()) {
      INFO(one.got);
      CHECK(one.code == VELO_OK);
      CHECK(one.value == 0);
    }
  }
}
