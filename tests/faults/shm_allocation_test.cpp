// Memory running out on one of several processes whose groups are over shm: in making groups and
// parts, in every collective and in every operator that works with a group. The n-th allocation of
// the rank's call fails, by itself or with all that follow, for n = 1, 2, .. until the call asks
// for fewer. The rank gets VELO_ERR_MEMORY, no rank waits until the deadline, and nothing is lost.
#include <memory>

#include "comm/collective/every_call.hpp"
#include "tests/faults/parallel_calls.hpp"
#include "tests/faults/shm_rounds.hpp"

using namespace velo::testing;

namespace {

constexpr std::int64_t deadline_ms = 8000, soon_ns = 4000000000;

// The work of one rank in a group, which may be called twice, and its results.
class rank_work {
 public:
  virtual ~rank_work() = default;
  virtual velo_status run() = 0;
  virtual std::vector<std::vector<float>> results() const = 0;
};

struct named_work {
  std::string name;
  int ranks;
  const char* level;  // of the context
  std::function<std::unique_ptr<rank_work>(const rank_of_group& me, velo_group second)> make;
};

class operator_work final : public rank_work {
 public:
  operator_work(const parallel_call& of, const rank_of_group& me, velo_group second)
      : call_(of, me, second) {}
  velo_status run() override { return call_.run(); }
  std::vector<std::vector<float>> results() const override { return call_.results(); }

 private:
  const rank_call call_;
};

class collective_work final : public rank_work {
 public:
  collective_work(const named_call& of, const rank_of_group& me, bool plans)
      : call_(of), me_{me.stream, me.group, me.rank, plans}, tensors_(1000, 3) {
    for (std::size_t i = 0; i < tensors_.in.size(); ++i)
      tensors_.in[i] = static_cast<float>(i % 7 + static_cast<std::size_t>(me.rank));
  }
  velo_status run() override { return call_.call(me_, tensors_); }
  std::vector<std::vector<float>> results() const override { return {tensors_.in, tensors_.out}; }

 private:
  const named_call& call_;
  const rank_of_three me_;
  call_tensors tensors_;
};

// Rank 0 sends, rank 1 receives.
named_call one_message() {
  return {
      "message", [](const rank_of_three& me, call_tensors& v) {
        if (me.rank == 2) return velo_status{VELO_OK};
        const velo_tensor x = v.view(me.rank == 0 ? v.in : v.out, v.part);
        return me.ask(collective_of(me.rank == 0 ? VELO_COLLECTIVE_SEND : VELO_COLLECTIVE_RECEIVE,
                                    &x, nullptr, 1 - me.rank));
      }};
}

// One rank of a work in its process.
class tried_rank {
 public:
  tried_rank(const shared_rounds& all, std::string base, int rank, complaints& wrong)
      : all_(all), base_(std::move(base)), rank_(rank), wrong_(wrong) {}

  void try_all(const named_work& of) {
    for_each_failure(all_, rank_, of.ranks, failure_shapes(), 1, [&](const failing_allocation& f) {
      const std::int64_t before = live_blocks();
      round(of, f);
      const std::int64_t lost = live_blocks() - before;
      if (f.n > 0)  // the first rounds fill what is kept
        wrong_.check(lost == 0, of.name + ", " + f.in_words() + ": rank " + std::to_string(rank_) +
                                    " lost " + std::to_string(lost));
    });
  }

 private:
  std::string next_name() { return base_ + "-" + std::to_string(++made_); }

  void round(const named_work& of, const failing_allocation& f) {
    rank_of_group me;
    const std::string first = next_name(), other = next_name();
    velo_group second = nullptr;
    const velo_group_desc again = shm_desc(other, rank_, of.ranks, deadline_ms);
    const velo_status opened = join_group(me, shm_desc(first, rank_, of.ranks, deadline_ms));
    const velo_status joined = velo_group_create(me.context, &again, &second);
    wrong_.check(opened == VELO_OK && joined == VELO_OK, of.name + ": no group");
    velo_config_set(me.context, "level", of.level);
    {
      const auto work = of.make(me, second);
      call(of, f, *work);
    }
    velo_group_destroy(second);
    velo_context_destroy(me.context);
  }

  // Each rank calls. The one whose allocation failed calls again, and the others do if the group
  // has ended.
  void call(const named_work& of, const failing_allocation& f, rank_work& work) {
    call_record ends, next;
    const std::int64_t begun = monotonic_ns();
    if (rank_ == f.rank && f.n > 0) {
      next = record_of(call_failing(all_, f, [&] { return work.run(); }));
      ends = next.code == VELO_OK ? next : record_of(work.run());
      all_->failures += next.code != VELO_OK;
      wrong_.check(next.code == VELO_OK || (next.code == VELO_ERR_MEMORY && all_->failed),
                   of.name + ", " + f.in_words() + ": " + in_words(next));
    } else {
      ends = record_of(work.run());
    }
    all_->codes[rank_] = ends.code;
    all_.wait();
    if (f.n == 0) good_ = work.results();
    const bool is_over = all_->codes[f.rank] == VELO_ERR_PEER;
    if (is_over && rank_ != f.rank) next = record_of(work.run());
    const bool is_right = ends.code == VELO_OK && work.results() == good_;
    const std::int64_t took = monotonic_ns() - begun;
    const std::string words = of.name + ", " + f.in_words() + ": rank " + std::to_string(rank_) +
                              " " + in_words(ends) + ", then " + in_words(next) + ", " +
                              std::to_string(took / 1000000) + " ms";
    if (rank_ == f.rank) all_->ended += is_over;
    if (is_over && rank_ != f.rank)
      wrong_.check(next.code == VELO_ERR_PEER && (ends.code == VELO_ERR_PEER || is_right), words);
    if (!is_over) wrong_.check(is_right, words);
    wrong_.check(took < soon_ns, words);
    all_.wait();
  }

  const shared_rounds& all_;
  const std::string base_;
  const int rank_;
  complaints& wrong_;
  int made_ = 0;
  std::vector<std::vector<float>> good_;
};

// Tries each work in processes, and returns how many calls failed and how many groups ended.
std::pair<long, long> try_works(int size, const std::vector<named_work>& works) {
  const shared_rounds all(size);
  const std::string base = processes::name();
  check_processes(size, [&](int rank) {
    complaints wrong;
    tried_rank one(all, base, rank, wrong);
    for (const named_work& work : works) one.try_all(work);
    return wrong.end();
  });
  return {all->failures, all->ended};
}

}  // namespace

TEST_CASE("an allocation that fails in a collective over shm is its rank's status") {
  std::vector<named_call> calls = every_call();
  calls.push_back(one_message());
  std::vector<named_work> works;
  for (const named_call& of : calls)
    for (const bool plans : {false, true})
      works.push_back({of.name + std::string(plans ? ", planned" : ""), 3, "2",
                       [&of, plans](const rank_of_group& me, velo_group) {
                         return std::make_unique<collective_work>(of, me, plans);
                       }});
  const auto [failures, ended] = try_works(3, works);
  CHECK(failures > 100);
  CHECK(ended < failures);
}

TEST_CASE("an allocation that fails in an operator over shm is its rank's status") {
  const std::vector<parallel_call> calls = every_parallel_call();
  std::vector<named_work> works;
  for (const parallel_call& of : calls)
    for (const char* level : {"2", "0", "1"}) {
      if (!all_allocations() && *level != '2') continue;
      works.push_back({of.op + std::string(", level ") + level, 2, level,
                       [&of](const rank_of_group& me, velo_group second) {
                         return std::make_unique<operator_work>(of, me, second);
                       }});
    }
  const auto [failures, ended] = try_works(2, works);
  CHECK(failures > 100);
  CHECK(ended > 10);
  CHECK(ended < failures);
}
