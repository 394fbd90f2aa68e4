// capacity: the maximum over experts and ranks, a prediction by its history, ranks that disagree,
// what is refused. Ranks are threads and processes.
#include <array>
#include <tuple>
#include <vector>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

using integers = std::vector<std::int64_t>;

struct capacity_call {
  integers counts, history;
  std::int64_t result = -1, tokens = 0, period = 19, initial = 256, margin = 20;

  velo_status run(velo_stream stream, velo_group group) {
    const std::int64_t experts = static_cast<std::int64_t>(counts.size());
    const std::int64_t kept = static_cast<std::int64_t>(history.size());
    const velo_tensor in = view_of(counts.data(), i64, &experts, 1);
    const velo_tensor out = view_of(&result, i64, nullptr, 0);
    const velo_tensor past = view_of(history.data(), i64, &kept, 1);
    velo_capacity_args args = VELO_CAPACITY_ARGS_INIT;
    args.group = group, args.counts = &in, args.capacity = &out;
    if (kept > 0) args.history = &past;
    args.tokens = tokens, args.period = period, args.initial = initial, args.margin = margin;
    return velo_capacity(stream, &args);
  }
};

}  // namespace

TEST_CASE("capacity is the largest count of any expert on any rank") {
  for (const int count : {1, 2, 3, 4, 8}) {
    const local_ranks ranks(count);
    for (const char* level : {"2", "1", "0"}) {
      set_all(ranks, "level", level);
      std::vector<capacity_call> all(static_cast<std::size_t>(count));
      for (int rank = 0; rank < count; ++rank)
        all[at(rank)].counts = {3, rank == count / 2 ? 50 : 7, 2};
      ranks.require(
          [&](const rank_of_group& me) { return all[at(me.rank)].run(me.stream, me.group); });
      for (const capacity_call& one : all) CHECK(one.result == 50);
    }
  }
  const local_ranks ranks(1);
  capacity_call alone{{4, 9}, {}}, few{{4, 9}, {}}, none{{}, {}};
  few.tokens = 8;
  REQUIRE(alone.run(ranks.stream(0), nullptr) == VELO_OK);
  REQUIRE(few.run(ranks.stream(0), nullptr) == VELO_OK);
  REQUIRE(none.run(ranks.stream(0), nullptr) == VELO_OK);
  CHECK((alone.result == 9 && few.result == 8 && none.result == 0));
}

TEST_CASE("a prediction holds until a maximum exceeds it, and follows the last maxima") {
  const local_ranks ranks(2);
  std::vector<capacity_call> all(2);
  for (capacity_call& one : all) one.history = integers(7), one.period = 5;
  const std::array<std::int64_t, 7> maxima = {300, 310, 305, 320, 316, 200, 340};
  const std::array<std::int64_t, 7> wanted = {300, 310, 305, 320, 316, 331, 340};
  for (std::size_t i = 0; i < maxima.size(); ++i) {
    all[0].counts = {1, maxima[i]};
    all[1].counts = {maxima[i] - 5, 0};
    ranks.require(
        [&](const rank_of_group& me) { return all[at(me.rank)].run(me.stream, me.group); });
    for (const capacity_call& one : all) CHECK(one.result == wanted[i]);
    CHECK(all[0].history == all[1].history);
  }
  CHECK((all[0].history == integers{7, 331, 200, 340, 305, 320, 316}));
}

TEST_CASE("processes agree on a capacity, too") {
  processes ranks;
  ranks.start_all(3, group_desc(), [](const rank_of_group& me) {
    ending all;
    capacity_call one;
    one.counts = {2, 10 + me.rank, 5};
    const velo_status done = one.run(me.stream, me.group);
    if (done != VELO_OK) return ending_of(done);
    all.value = one.result == 12 ? 0 : 1;
    all.code = VELO_OK;
    return all;
  });
  check_right(ranks.wait());
}

TEST_CASE("ranks of an MPI job on two hosts agree on a capacity") {
  const ranks_on_hosts hosts("0011");
  std::vector<capacity_call> all(4);
  for (int rank = 0; rank < 4; ++rank) all[at(rank)].counts = {2, 10 + rank, 5};
  hosts.require([&](const rank_of_group& me) { return all[at(me.rank)].run(me.stream, me.group); });
  for (const capacity_call& one : all) CHECK(one.result == 13);
}

TEST_CASE("ranks that disagree about the rule of a capacity all learn it") {
  const local_ranks ranks(2, group_desc(2000));
  std::vector<capacity_call> all(2);
  for (capacity_call& one : all) one.counts = {3, 4};
  all[1].tokens = 100;
  const std::vector<call_record> failures =
      ranks.run([&](const rank_of_group& me) { return all[at(me.rank)].run(me.stream, me.group); });
  CHECK(failures[0].code == VELO_ERR_PEER);
  CHECK(failures[1].code == VELO_ERR_PEER);
  CHECK(all[0].result == -1);
}

TEST_CASE("wrong numbers of a rank give no rank a capacity, and end no group") {
  const std::int64_t beyond = (std::int64_t{1} << 40) + 1;
  const integers rows{3, 4}, history{0, 0, 0};
  const local_ranks ranks(3);
  for (const auto& [counts, past, argument] : {std::tuple{integers{3, -4}, history, "args.counts"},
                                               {integers{beyond}, history, "args.counts"},
                                               {rows, integers{0, -1, 0}, "args.history"}}) {
    std::vector<capacity_call> all(3, capacity_call{rows, history});
    all[1].counts = counts, all[1].history = past;
    const std::vector<call_record> failures = ranks.run(
        [&](const rank_of_group& me) { return all[at(me.rank)].run(me.stream, me.group); });
    for (const int rank : {0, 1, 2}) {
      const call_record& one = failures[at(rank)];
      CHECK(all[at(rank)].result == -1);
      CHECK(all[at(rank)].history == (rank == 1 ? past : history));
      CHECK(one.code == (rank == 1 ? VELO_ERR_ARGUMENT : VELO_ERR_PEER));
      CHECK(one.argument == (rank == 1 ? argument : "args.group"));
      if (rank != 1) CHECK((one.rank == 1 && one.got == "others on rank 1"));
    }
  }
  std::vector<capacity_call> all(3, capacity_call{rows, {}});
  ranks.require([&](const rank_of_group& me) { return all[at(me.rank)].run(me.stream, me.group); });
}

TEST_CASE("ranks whose histories differ get the largest prediction, and go on with it") {
  const local_ranks ranks(2);
  std::vector<capacity_call> all(2, capacity_call{{3, 4}, {2, 50, 7, 8}});
  all[1].history = {2, 60, 7, 8};
  ranks.require([&](const rank_of_group& me) { return all[at(me.rank)].run(me.stream, me.group); });
  for (const capacity_call& one : all) {
    CHECK(one.result == 60);
    CHECK(one.history == integers{3, 60, 4, 8});
  }
}

TEST_CASE("a prediction of the largest numbers is one that the next call takes") {
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  const local_ranks ranks(1);
  // 2^23 maxima of 2^40 have a sum of 2^63.
  capacity_call one{{largest}, integers((std::size_t{1} << 23) + 3, largest)};
  one.period = 1;
  for (int call = 0; call < 2; ++call) {
    REQUIRE(one.run(ranks.stream(0), nullptr) == VELO_OK);
    CHECK(one.result == largest);
    CHECK((one.history[0] == largest && one.history[1] == largest));
  }
}

TEST_CASE("capacity names what is wrong with its arguments") {
  const local_ranks ranks(1);
  capacity_call one{{3, 4}, {0, 0}};
  CHECK_REFUSED(one.run(ranks.stream(0), nullptr), VELO_ERR_SHAPE, "args.history.shape");
  one.history = {0, -1, 0};
  CHECK_REFUSED(one.run(ranks.stream(0), nullptr), VELO_ERR_ARGUMENT, "args.history");
  one.history = {0, 0, 0};
  one.counts = {3, -4};
  CHECK_REFUSED(one.run(ranks.stream(0), nullptr), VELO_ERR_ARGUMENT, "args.counts");
  one.counts = {3, 4};
  one.period = 0;
  CHECK_REFUSED(one.run(ranks.stream(0), nullptr), VELO_ERR_ARGUMENT, "args.period");
  one.period = 1, one.tokens = -1;
  CHECK_REFUSED(one.run(ranks.stream(0), nullptr), VELO_ERR_ARGUMENT, "args.tokens");
  CHECK(one.result == -1);
}
