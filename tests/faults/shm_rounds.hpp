// Rounds of processes that are ranks of groups over shm: in each round the n-th allocation of one
// rank fails. All processes step through the same rounds together.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "comm/processes.hpp"
#include "tests/faults/failing_memory.hpp"

namespace velo::testing {

constexpr int most_processes = 3;

// Memory that the processes of a test share.
class shared_rounds {
 public:
  struct state {
    pthread_barrier_t barrier;
    std::atomic<bool> failed{false};  // the allocation that was to fail, in this round
    std::atomic<int> codes[most_processes]{};
    std::atomic<long> failures{0}, ended{0};  // of all rounds
  };

  explicit shared_rounds(int size) {
    void* memory =
        mmap(nullptr, sizeof(state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    all_ = new (memory) state;
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&all_->barrier, &shared, static_cast<unsigned>(size));
    pthread_barrierattr_destroy(&shared);
  }
  ~shared_rounds() { munmap(all_, sizeof(state)); }
  shared_rounds(const shared_rounds&) = delete;

  state& operator*() const { return *all_; }
  state* operator->() const { return all_; }
  void wait() const { pthread_barrier_wait(&all_->barrier); }

 private:
  state* all_;
};

// What a process has found wrong: how often, and the first case in words.
class complaints {
 public:
  void check(bool holds, const std::string& what) {
    if (!holds && count_++ == 0) first_ = what;
  }
  ending end() const {
    ending all = ending_of(VELO_OK, count_);
    all.cause = first_.substr(0, 1500);
    return all;
  }

 private:
  std::int64_t count_ = 0;
  std::string first_;
};

inline std::string in_words(const call_record& one) {
  std::ostringstream text;
  text << "status " << one.code << " (" << one << ")";
  return text.str();
}

struct failing_allocation {
  int rank, n;  // n 0: none fails
  failure_shape how;

  std::string in_words() const {
    return "allocation " + std::to_string(n) + " of rank " + std::to_string(rank) +
           (how == failure_shape::from_then_on ? " and all later" : "");
  }
};

// Calls body(failing_allocation) for three rounds in which nothing fails, and then for each rank,
// shape and every `step`-th n until no allocation of a round fails. All processes make the same
// rounds.
template <class Body>
void for_each_failure(const shared_rounds& all, int rank, int size,
                      const std::vector<failure_shape>& shapes, int step, const Body& body) {
  const auto round = [&](const failing_allocation& of) {
    all.wait();
    if (rank == 0) all->failed = false;
    all.wait();
    body(of);
    all.wait();
    return all->failed.load();
  };
  for (int warm = 0; warm < 3; ++warm) round({0, 0, failure_shape::never});
  for (int culprit = 0; culprit < size; ++culprit)
    for (const failure_shape how : shapes)
      for (int n = 1; round({culprit, n, how}) && n < 1000;) n += step;
}

// The status of a call of the rank whose allocation fails.
template <class Call>
velo_status call_failing(const shared_rounds& all, const failing_allocation& of, const Call& call) {
  begin_failing_here(of.how, of.n);
  const velo_status status = call();
  if (end_failing()) all->failed = true;
  return status;
}

// The shapes of failures, and whether all cases are to run: VELO_ALLOCATIONS, set in label long.
inline bool all_allocations() {
  return std::getenv("VELO_ALLOCATIONS") != nullptr;
}
inline std::vector<failure_shape> failure_shapes() {
  if (!all_allocations()) return {failure_shape::once};
  return {failure_shape::once, failure_shape::from_then_on};
}

// Starts the processes, and checks what they report.
template <class Body>
void check_processes(int size, const Body& body) {
  processes ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.start([&, rank] {
      alarm(all_allocations() ? 1500 : 60);  // a rank that hangs ends without a report
      return body(rank);
    });
  check_right(ranks.wait());
}

}  // namespace velo::testing
