// Memory running out on one rank of two, in every operator that works with a group: the n-th
// allocation of the rank's call fails, by itself or with all that follow, for n = 1, 2, .. until
// the call asks for fewer. The rank gets VELO_ERR_MEMORY. Then either nothing has happened, and the
// same call of the rank succeeds beside the other's, with the same results; or the group has ended:
// both get VELO_ERR_PEER, the other one in its next call if it had finished this one. No rank waits
// until the group's timeout, and nothing is lost.
#include <chrono>

#include "comm/ranks.hpp"
#include "tests/faults/failing_memory.hpp"
#include "tests/faults/parallel_calls.hpp"

using namespace velo::testing;

namespace {

// Two ranks at a level, and the second group of operators that have two.
struct two_ranks {
  explicit two_ranks(const char* level) {
    velo_context both[2];
    for (const int rank : {0, 1}) {
      both[rank] = ranks.context(rank);
      REQUIRE(velo_config_set(both[rank], "level", level) == VELO_OK);
    }
    const velo_group_desc desc = group_desc();
    REQUIRE(velo_group_create_local(both, 2, &desc, second) == VELO_OK);
  }
  ~two_ranks() {
    for (const velo_group one : second) velo_group_destroy(one);
  }
  two_ranks(const two_ranks&) = delete;

  const local_ranks ranks{2};
  velo_group second[2] = {};
};

struct round_outcome {
  call_record failing, again, other, next;  // next: of the other, where the group has ended
  bool failed = false;
  double seconds = 0;
  std::vector<std::vector<float>> results[2];
};

// Both ranks call; the n-th allocation of `culprit` fails, and if its call does, it calls again.
round_outcome round_of(const parallel_call& of, const char* level, int culprit, failure_shape how,
                       int n) {
  const two_ranks all(level);
  const rank_call calls[] = {{of, all.ranks.rank(0), all.second[0]},
                             {of, all.ranks.rank(1), all.second[1]}};
  round_outcome seen;
  const auto begun = std::chrono::steady_clock::now();
  on_threads(2, [&](int rank) {
    if (rank != culprit) {
      seen.other = record_of(calls[rank].run());
      return;
    }
    begin_failing_here(how, n);
    const velo_status status = calls[rank].run();
    seen.failed = end_failing();
    seen.failing = record_of(status);
    if (status != VELO_OK) seen.again = record_of(calls[rank].run());
  });
  seen.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  for (const int rank : {0, 1}) seen.results[rank] = calls[rank].results();
  if (seen.again.code == VELO_ERR_PEER) seen.next = record_of(calls[1 - culprit].run());
  return seen;
}

}  // namespace

TEST_CASE("an allocation that fails on one rank of two is its status, and no rank hangs") {
  int failures = 0, ended = 0;
  const auto check_all = [&](const parallel_call& of, const char* level, int culprit,
                             failure_shape how, const round_outcome& good) {
    bool more = true;
    for (int n = 1; more; ++n) {
      const std::int64_t before = live_blocks();
      {
        const round_outcome seen = round_of(of, level, culprit, how, n);
        INFO("rank " << culprit << ", allocation " << n
                     << (how == failure_shape::once ? "" : " and all later") << ": status "
                     << seen.failing.code << " " << seen.failing << "; again " << seen.again.code
                     << " " << seen.again << "; the other " << seen.other.code << " " << seen.other
                     << "; then " << seen.next.code);
        more = seen.failed;
        failures += seen.failing.code != VELO_OK;
        const bool as_if_nothing = seen.again.code == VELO_OK && seen.other.code == VELO_OK &&
                                   seen.results[0] == good.results[0] &&
                                   seen.results[1] == good.results[1];
        const int other = 1 - culprit;
        const bool other_is_right =
            seen.other.code == VELO_ERR_PEER ||
            (seen.other.code == VELO_OK && seen.results[other] == good.results[other]);
        const bool is_over = seen.failing.code != VELO_OK && seen.again.code == VELO_ERR_PEER &&
                             seen.next.code == VELO_ERR_PEER && other_is_right;
        ended += is_over;
        CHECK((seen.failing.code == VELO_OK ||
               (seen.failed && seen.failing.code == VELO_ERR_MEMORY)));
        CHECK((as_if_nothing || is_over));
        CHECK(seen.seconds < 10);
      }
      CHECK(live_blocks() - before == 0);
      REQUIRE(n < 1000);
    }
  };
  for (const parallel_call& of : every_parallel_call())
    for (const char* level : {"0", "1", "2"}) {
      INFO(of.op << ", level " << level);
      round_outcome good;
      for (int warm = 0; warm < 3; ++warm) good = round_of(of, level, 0, failure_shape::never, 0);
      INFO(good.failing << "; " << good.other);
      REQUIRE(good.failing.code == VELO_OK);
      REQUIRE(good.other.code == VELO_OK);
      for (const int culprit : {0, 1})
        for (const failure_shape how : {failure_shape::once, failure_shape::from_then_on})
          check_all(of, level, culprit, how, good);
    }
  CHECK(failures > 1000);
  CHECK(ended > 100);
  CHECK(ended < failures);
}
