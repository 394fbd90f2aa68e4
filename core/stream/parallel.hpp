// The one way in which kernels use several threads: run `tasks` calls of a function, in velo's own
// pool or the host's `parallel_for`, and return when all are done.
//
// Invariant: the result of a task never depends on the number of threads, so results are
// bit-identical for any number. The number of threads may decide the division into tasks only if no
// division changes an element of the result (products). `thread` (0 <= thread < threads) is for
// scratch memory only. Cost: an indirect call for each task; about 0.5 us to enter the region when
// the workers are awake.
#pragma once

#include <cstdint>
#include <type_traits>

namespace velo::core {

class parallel {
 public:
  using task_fn = void (*)(void* user, std::int64_t task, int thread);
  using run_fn = void (*)(void* self, std::int64_t tasks, task_fn fn, void* user);

  // slices: the least number that justifies another thread; see slices().
  constexpr parallel(void* self, run_fn run, int threads, int slices = 1)
      : self_(self), run_(run), threads_(threads), slices_(slices) {}

  int threads() const { return threads_; }

  // body(task, thread) for every task in [0, tasks). The body must not throw and must not enter the
  // region again.
  template <class Body>
  void operator()(std::int64_t tasks, Body&& body) const {
    using body_type = std::remove_reference_t<Body>;
    run_(
        self_, tasks,
        [](void* user, std::int64_t task, int thread) {
          (*static_cast<body_type*>(user))(task, thread);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  // The same for light work. amount: how many slices of some 5 us the work is worth (rows.hpp); by
  // default the number of tasks. Too little work for two threads runs on the caller, without a
  // region.
  template <class Body>
  void slices(std::int64_t tasks, Body&& body) const {
    slices(tasks, tasks, body);
  }
  template <class Body>
  void slices(std::int64_t amount, std::int64_t tasks, Body&& body) const {
    if (amount >= 2 * slices_) return (*this)(tasks, body);
    for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
  }

 private:
  void* self_;
  run_fn run_;
  int threads_, slices_;
};

}  // namespace velo::core
