// Faults in the middle of every call: a stopped rank, which the others name at the deadline and
// which gets the same record when it continues; an abort; a rank that calls something else.
// VELO_STOPS=all stops each rank, in direct and planned calls, of two sizes.
#include <cstdlib>

#include "comm/board.hpp"
#include "comm/collective/every_call.hpp"
#include "comm/lateness.hpp"
#include "comm/processes.hpp"

using namespace velo::testing;

namespace {

constexpr std::int64_t deadline_ms = 300;

struct scene {
  named_call is;
  int victim;
  bool plans;
  std::int64_t part;
};

std::vector<named_call> all_calls() {
  std::vector<named_call> all = every_call();
  all.push_back(send_and_receive());
  return all;
}

std::vector<scene> every_scene() {
  const std::vector<named_call> calls = all_calls();
  std::vector<scene> all;
  if (std::getenv("VELO_STOPS") == nullptr) {
    for (std::size_t i = 0; i < calls.size(); ++i)
      all.push_back({calls[i], static_cast<int>(i % 3), i % 2 == 1, 70000});
    return all;
  }
  for (const named_call& one : calls)
    for (const int victim : {0, 1, 2})
      for (const bool plans : {false, true})
        for (const std::int64_t part : {1000, 70000}) all.push_back({one, victim, plans, part});
  return all;
}

// Three processes that call one thing over and over until it fails.
class play {
 public:
  explicit play(const scene& which) : is_(which) {
    ranks_.start_all(3, group_desc(deadline_ms), [this](const rank_of_group& me) {
      call_tensors v(is_.part, 3);
      ending all;
      while (true) {
        all = ending_of(is_.is.call({me.stream, me.group, me.rank, is_.plans}, v));
        if (all.code != VELO_OK) break;
        ++at_.at[rounds + me.rank];
      }
      ++at_.at[over];
      return all;
    });
  }

  void stop() {
    for (int rank = 0; rank < 3; ++rank) at_.await(rounds + rank, 3);
    REQUIRE(kill(ranks_.pid(is_.victim), SIGSTOP) == 0);
    stopped_ = monotonic_ns();
  }
  // When the others know.
  void go_on() {
    at_.await(over, 2);
    went_on_ = monotonic_ns();
    REQUIRE(kill(ranks_.pid(is_.victim), SIGCONT) == 0);
  }
  void check(const lateness& late_by) {
    const std::vector<ending> all = ranks_.wait();
    for (int rank = 0; rank < 3; ++rank) {
      const ending& one = all[at(rank)];
      INFO(is_.is.name << (is_.plans ? ", planned" : "") << " of " << is_.part << ", rank " << rank
                       << ": " << one);
      CHECK_PEER(one, is_.victim, "rank " + std::to_string(is_.victim) + " not there");
      if (rank == is_.victim) continue;
      const double took = static_cast<double>(one.at_ns - stopped_) / 1e6;
      CHECK(took < deadline_ms + 20 + late_by.of_ms(2));
      CHECK(one.at_ns < went_on_);
    }
  }

 private:
  static constexpr int rounds = 0, over = 3;  // places of the board
  const scene is_;
  const board at_;
  processes ranks_;
  std::int64_t stopped_ = 0, went_on_ = 0;
};

}  // namespace

TEST_CASE("a rank stopped inside any collective is named to all at the deadline") {
  constexpr std::size_t at_once = 8;  // most of it is waiting
  const std::vector<scene> all = every_scene();
  for (std::size_t first = 0; first < all.size(); first += at_once) {
    std::vector<std::unique_ptr<play>> some;
    for (std::size_t i = first; i < std::min(all.size(), first + at_once); ++i)
      some.push_back(std::make_unique<play>(all[i]));
    const lateness late_by;
    for (auto& one : some) one->stop();
    for (auto& one : some) one->go_on();
    for (auto& one : some) one->check(late_by);
  }
}

TEST_CASE("an abort from another thread ends any collective on all ranks") {
  for (const named_call& is : all_calls())
    for (const bool plans : {false, true}) {
      INFO(is.name << (plans ? ", planned" : ""));
      const local_ranks ranks(3);
      const lateness late_by;
      std::atomic<int> rounds{0};
      std::int64_t aborted = 0, ended[3] = {};
      std::thread other([&] {
        while (rounds < 6) std::this_thread::yield();
        aborted = monotonic_ns();
        velo_group_abort(ranks.group(1));
      });
      const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
        call_tensors v(70000, 3);
        velo_status done = VELO_OK;
        while (done == VELO_OK) {
          done = is.call({me.stream, me.group, me.rank, plans}, v);
          ++rounds;
        }
        ended[me.rank] = monotonic_ns();
        return done;
      });
      other.join();
      for (int rank = 0; rank < 3; ++rank) {
        const call_record& one = all[at(rank)];
        INFO("rank " << rank << ": " << one);
        CHECK(one.code == VELO_ERR_PEER);
        CHECK(one.got == "an abort by rank 1");
        CHECK(static_cast<double>(ended[rank] - aborted) / 1e6 < 150 + late_by.of_ms(4));
      }
    }
}

TEST_CASE("a rank that calls something else than any collective is named to all") {
  for (const named_call& is : every_call()) {
    if (std::string(is.name) == "messages") continue;  // which two ranks alone compare
    for (const bool plans : {false, true}) {
      INFO(is.name << (plans ? ", planned" : ""));
      const local_ranks ranks(3);
      const bool is_barrier = std::string(is.name) == "barrier";
      const std::vector<call_record> all = ranks.run([&](int rank) {
        call_tensors v(7000, 3);
        const rank_of_three me{ranks.stream(rank), ranks.group(rank), rank, plans};
        if (rank != 1) return is.call(me, v);
        const velo_tensor x = v.view(v.in, v.part);
        return me.ask(is_barrier ? collective_of(VELO_COLLECTIVE_BROADCAST, &x, nullptr, 0)
                                 : collective_of(VELO_COLLECTIVE_BARRIER, nullptr, nullptr));
      });
      for (const call_record& one : all) {
        CHECK_PEER(one, 1,
                   (is_barrier ? "rank 1 with broadcast of 7000 float32 from rank 0"
                               : "rank 1 with barrier"));
      }
    }
  }
}
