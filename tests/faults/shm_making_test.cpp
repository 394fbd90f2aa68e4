// Memory running out on one of three processes while they make a group over shm, a part of one or
// a group of those that are left of one. The rank gets VELO_ERR_MEMORY. The other ranks get the
// group, whose first call then fails, or a failure. If the rank calls again, all have the group
// before the deadline, and the group that it is a part of goes on. The group of survivors is made
// once: the others wait for a rank that lives until the deadline.
#include <algorithm>

#include "tests/faults/shm_rounds.hpp"

using namespace velo::testing;

namespace {

constexpr int ranks = 3, most_attempts = 3;
constexpr std::int64_t deadline_ms = 8000, soon_ms = 4000, short_deadline_ms = 250;

enum class making { group, part, survivors };

const char* name_of(making what) {
  return what == making::group ? "group" : what == making::part ? "part" : "survivors";
}

// One rank in its process.
class making_rank {
 public:
  making_rank(const shared_rounds& all, std::string base, int rank, complaints& wrong)
      : all_(all), base_(std::move(base)), rank_(rank), wrong_(wrong) {}

  void try_all(making what) {
    const bool is_sample = what == making::survivors && !all_allocations();
    for_each_failure(
        all_, rank_, ranks, failure_shapes(), is_sample ? 15 : 1, [&](const failing_allocation& f) {
          const std::int64_t before = live_blocks();
          round(what, f);
          const std::int64_t lost = live_blocks() - before;
          if (f.n > 0)  // the first rounds fill what is kept
            wrong_.check(lost == 0, std::string(name_of(what)) + ", " + f.in_words() + ": rank " +
                                        std::to_string(rank_) + " lost " + std::to_string(lost));
        });
  }

 private:
  void round(making what, const failing_allocation& f) {
    rank_of_group me;
    const std::string first = base_ + "-" + std::to_string(++made_), next = first + "-next";
    velo_status opened = open_context(me);
    const velo_group_desc desc = shm_desc(first, rank_, ranks, deadline_ms),
                          again = shm_desc(next, rank_, ranks, deadline_ms);
    if (what != making::group) opened = velo_group_create(me.context, &desc, &me.group);
    if (what == making::survivors) velo_group_abort(me.group);
    wrong_.check(opened == VELO_OK, "no group");
    all_.wait();
    const auto make = [&](velo_group* made) {
      const std::int32_t reversed[] = {2, 1, 0};
      velo_group_desc part =
          group_desc(what == making::survivors ? short_deadline_ms : deadline_ms);
      if (what == making::group) return velo_group_create(me.context, &again, made);
      if (what == making::part)
        return velo_group_create_part(me.group, reversed, ranks, &part, made);
      return velo_group_shrink(me.group, &part, made);
    };
    attempt(what, f, me.stream, make);
    if (what == making::part)
      wrong_.check(velo_group_barrier(me.stream, me.group) == VELO_OK, "the parent has ended");
    velo_context_destroy(me.context);
  }

  // Makes the group until its first call succeeds, that of survivors once. A rank calls again as
  // soon as a call has failed.
  template <class Make>
  void attempt(making what, const failing_allocation& f, velo_stream stream, const Make& make) {
    std::string words =
        std::string(name_of(what)) + ", " + f.in_words() + ": rank " + std::to_string(rank_);
    const std::int64_t begun = monotonic_ns();
    velo_status done = VELO_ERR_PEER;
    const int attempts = what == making::survivors && f.n > 0 ? 1 : most_attempts;
    for (int i = 0; i < attempts && done != VELO_OK; ++i) {
      velo_group made = nullptr;
      const bool fails = i == 0 && f.n > 0 && rank_ == f.rank;
      done = fails ? call_failing(all_, f, [&] { return make(&made); }) : make(&made);
      const call_record record = record_of(done);
      words += ", " + in_words(record);
      if (fails) all_->failures += done != VELO_OK;
      wrong_.check(done == VELO_OK || (fails ? done == VELO_ERR_MEMORY : done == VELO_ERR_PEER),
                   words);
      if (done == VELO_OK) done = velo_group_barrier(stream, made);
      if (done != VELO_OK) words += ", in its call " + in_words(record_of(done));
      velo_group_destroy(made);
    }
    const std::int64_t took_ms = (monotonic_ns() - begun) / 1000000;
    words += ", " + std::to_string(took_ms) + " ms";
    wrong_.check(took_ms < soon_ms && (done == VELO_OK || attempts == 1), words);
    all_.wait();
  }

  const shared_rounds& all_;
  const std::string base_;
  const int rank_;
  complaints& wrong_;
  int made_ = 0;
};

void try_making(making what) {
  const shared_rounds all(ranks);
  const std::string base = processes::name();
  check_processes(ranks, [&](int rank) {
    complaints wrong;
    making_rank(all, base, rank, wrong).try_all(what);
    return wrong.end();
  });
  CHECK(all->failures >= 2 * ranks);
}

}  // namespace

TEST_CASE("an allocation that fails while a group over shm is made is its rank's status") {
  try_making(making::group);
}

TEST_CASE("an allocation that fails while a part over shm is made is its rank's status") {
  try_making(making::part);
}

TEST_CASE("an allocation that fails while a group over shm shrinks is its rank's status") {
  try_making(making::survivors);
}
