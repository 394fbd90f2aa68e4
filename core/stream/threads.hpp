// The fork-join pool of a context: a fixed set of workers that run one parallel region at a time
// together with the caller.
//
// A region's tasks are divided into one contiguous part for each thread. Each worker has a word on
// a cache line of its own. The caller offers a part by writing the word; the worker takes it by
// compare-and-swap, and so does the caller if the worker has not come yet. A region therefore never
// waits for a thread that is not running, and more threads than processors only cost time. Idle
// workers spin briefly, then yield, then sleep on a futex.
//
// Invariant: a task's part depends only on the numbers of tasks and threads, and no result depends
// on it. One region runs at a time, from any thread (the context's turn ensures that). Cost: 0.2 to
// 0.5 us to enter and leave with 2 awake threads.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/stream/parallel.hpp"
#include "velo/context.h"

namespace velo::core {

// A system thread with all signals blocked (they belong to the host's threads), joined or detached
// explicitly.
class native_thread {
 public:
  void start(const char* name, void* (*entry)(void*), void* argument);  // throws VELO_ERR_MEMORY
  void join() noexcept;
  void detach() noexcept;
  bool is_current() const noexcept { return running_ && pthread_equal(id_, pthread_self()) != 0; }

 private:
  pthread_t id_{};
  bool running_ = false;
};

class thread_pool {
 public:
  explicit thread_pool(int threads);  // starts threads - 1 workers
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  parallel as_parallel() { return parallel(this, &run, threads_); }

 private:
  struct worker;
  struct region {
    parallel::task_fn fn = nullptr;
    void* user = nullptr;
    std::int64_t tasks = 0;
    int parts = 0;
  };

  static void run(void* self, std::int64_t tasks, parallel::task_fn fn, void* user);
  static void* work(void* worker);
  worker& worker_of(int part);
  void run_part(int part) const;
  bool take_part(worker& at, std::uint32_t offer);
  void await_done(worker& at, std::uint32_t ticket) const;
  void await_offer(worker& at);
  void stop() noexcept;

  int threads_;
  int pauses_;  // spins before yielding; 0 if there are more threads than processors
  region region_;
  bool inside_ = false;  // a region entered from inside another runs on the calling thread alone
  std::uint32_t ticket_ = 0;
  std::unique_ptr<worker[]> workers_;
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
  std::atomic<std::uint32_t> signal_{0};
  std::atomic<bool> stopping_{false};
};

// The host's parallel_for in place of a pool. threads: the number of parts of a region.
struct host_threads {
  velo_parallel_for callback;
  int threads;
  const void* owner = nullptr;  // the handle of the context

  parallel as_parallel();
};

}  // namespace velo::core
