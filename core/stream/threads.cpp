// The protocol of the workers' words. A word is ticket | phase; tickets count regions in steps of
// `phases`.
//
//   offered --worker or caller--> taken --worker--> done
//                                   \--caller, tired of waiting--> watched --worker--> done,
//                                      and wakes the caller
//
// The region's description is written before a part is offered and stays unchanged until every part
// is done, so a thread that has taken a part may read it. Sleeping workers count themselves in
// asleep_. The caller adds zero to that counter after offering, which orders the two: either the
// caller sees the sleeper, or the sleeper sees the offer.
#include "core/stream/threads.hpp"

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>

#include "core/failure.hpp"
#include "core/handle/host_call.hpp"
#include "core/handle/inside.hpp"
#include "core/host/cpu.hpp"
#include "core/host/float_mode.hpp"
#include "core/host/futex.hpp"
#include "core/index.hpp"

namespace velo::core {
namespace {

enum phase : std::uint32_t { offered, taken, watched, done };
constexpr std::uint32_t phases = done + 1, phase_mask = phases - 1;
static_assert((phases & phase_mask) == 0 && offered == 0);

constexpr std::uint32_t phase_of(std::uint32_t word) {
  return word & phase_mask;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// About 50 us of spinning and 100 us of yielding: longer than the gaps between the operators of a
// training step, and too short to matter on an idle machine.
constexpr int spins = 1000;
constexpr int yields = 200;

class backoff {
 public:
  explicit backoff(int pauses) : pauses_(pauses) {}

  bool wait() {  // false: it is time to sleep
    if (round_ < pauses_) {
      pause();
    } else if (round_ < pauses_ + yields) {
      sched_yield();
    } else {
      return false;
    }
    ++round_;
    return true;
  }

 private:
  int pauses_;
  int round_ = 0;
};

void run_range(parallel::task_fn fn, void* user, std::int64_t tasks, int parts, int part) {
  const std::int64_t share = tasks / parts, more = tasks % parts;
  const std::int64_t first = share * part + std::min<std::int64_t>(part, more);
  const std::int64_t last = first + share + (part < more ? 1 : 0);
  for (std::int64_t task = first; task < last; ++task) fn(user, task, part);
}

}  // namespace

void native_thread::start(const char* name, void* (*entry)(void*), void* argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&id_, nullptr, entry, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    char cause[128] = "";
    fail(VELO_ERR_MEMORY, "threads", "a new thread", "none",
         strerror_r(error, cause, sizeof cause));
  }
  running_ = true;
  pthread_setname_np(id_, name);
}

void native_thread::join() noexcept {
  if (running_) pthread_join(id_, nullptr);
  running_ = false;
}

void native_thread::detach() noexcept {
  if (running_) pthread_detach(id_);
  running_ = false;
}

struct alignas(64) thread_pool::worker {
  std::atomic<std::uint32_t> word{done};
  thread_pool* pool = nullptr;
  int part = 0;
  native_thread thread;
};

thread_pool::worker& thread_pool::worker_of(int part) {
  return workers_[at(part)];
}

thread_pool::thread_pool(int threads)
    : threads_(threads),
      pauses_(threads <= usable_threads() ? spins : 0),
      workers_(new worker[static_cast<std::size_t>(threads)]) {
  try {
    for (int i = 1; i < threads; ++i) {
      char name[16];
      std::snprintf(name, sizeof name, "velo/%u", static_cast<unsigned>(i));
      worker_of(i).pool = this;
      worker_of(i).part = i;
      worker_of(i).thread.start(name, &work, &worker_of(i));
    }
  } catch (...) {
    stop();
    throw;
  }
}

thread_pool::~thread_pool() {
  stop();
}

void thread_pool::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  signal_.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(signal_, INT_MAX);
  for (int i = 1; i < threads_; ++i) worker_of(i).thread.join();
}

void thread_pool::run_part(int part) const {
  run_range(region_.fn, region_.user, region_.tasks, region_.parts, part);
}

bool thread_pool::take_part(worker& at, std::uint32_t offer) {
  return at.word.compare_exchange_strong(offer, offer | taken, std::memory_order_acq_rel,
                                         std::memory_order_relaxed);
}

void thread_pool::run(void* self, std::int64_t tasks, parallel::task_fn fn, void* user) {
  auto& pool = *static_cast<thread_pool*>(self);
  const int parts = static_cast<int>(std::min<std::int64_t>(tasks, pool.threads_));
  if (parts <= 1 || pool.inside_) {
    for (std::int64_t task = 0; task < tasks; ++task) fn(user, task, 0);
    return;
  }
  pool.inside_ = true;
  pool.region_ = {fn, user, tasks, parts};
  pool.ticket_ += phases;
  for (int i = 1; i < parts; ++i)
    pool.worker_of(i).word.store(pool.ticket_ | offered, std::memory_order_release);
  if (pool.asleep_.fetch_add(0, std::memory_order_acq_rel) > 0) {
    pool.signal_.fetch_add(1, std::memory_order_release);
    futex_wake(pool.signal_, INT_MAX);
  }
  pool.run_part(0);
  for (int i = 1; i < parts; ++i) {
    if (!pool.take_part(pool.worker_of(i), pool.ticket_ | offered)) continue;
    pool.run_part(i);
    pool.worker_of(i).word.store(pool.ticket_ | done, std::memory_order_release);
  }
  for (int i = 1; i < parts; ++i) pool.await_done(pool.worker_of(i), pool.ticket_);
  pool.inside_ = false;
}

void thread_pool::await_done(worker& at, std::uint32_t ticket) const {
  backoff backing_off(pauses_);
  while (true) {
    std::uint32_t word = at.word.load(std::memory_order_acquire);
    if (word == (ticket | done)) return;
    if (backing_off.wait()) continue;
    if (word == (ticket | taken) &&
        !at.word.compare_exchange_strong(word, ticket | watched, std::memory_order_acquire))
      continue;
    futex_wait(at.word, ticket | watched);
  }
}

void thread_pool::await_offer(worker& at) {
  const auto idle = [&] {
    return phase_of(at.word.load(std::memory_order_acquire)) != offered &&
           !stopping_.load(std::memory_order_acquire);
  };
  backoff backing_off(pauses_);
  while (idle()) {
    if (backing_off.wait()) continue;
    const std::uint32_t signal = signal_.load(std::memory_order_acquire);
    asleep_.fetch_add(1, std::memory_order_acq_rel);
    if (idle()) futex_wait(signal_, signal);
    asleep_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void* thread_pool::work(void* argument) {
  auto& at = *static_cast<worker*>(argument);
  thread_pool& pool = *at.pool;
  const float_mode standard;
  while (!pool.stopping_.load(std::memory_order_acquire)) {
    const std::uint32_t word = at.word.load(std::memory_order_acquire);
    if (phase_of(word) != offered || !pool.take_part(at, word)) {
      pool.await_offer(at);
      continue;
    }
    pool.run_part(at.part);
    const std::uint32_t ticket = word & ~phase_mask;
    if (phase_of(at.word.exchange(ticket | done, std::memory_order_acq_rel)) == watched)
      futex_wake(at.word, 1);
  }
  return nullptr;
}

namespace {

struct host_region {
  parallel::task_fn fn;
  void* user;
  std::int64_t tasks;
  int parts;
};

void run_host_part(void* user, std::int64_t part) {
  const auto& region = *static_cast<const host_region*>(user);
  const float_mode standard;
  run_range(region.fn, region.user, region.tasks, region.parts, static_cast<int>(part));
}

void run_on_host(void* self, std::int64_t tasks, parallel::task_fn fn, void* user) {
  const auto& host = *static_cast<const host_threads*>(self);
  const int parts = static_cast<int>(std::min<std::int64_t>(tasks, host.threads));
  if (parts <= 1) {
    for (std::int64_t task = 0; task < tasks; ++task) fn(user, task, 0);
    return;
  }
  host_region region{fn, user, tasks, parts};
  const inside_scope mine(host.owner, part::given);
  call_host("parallel_for.run",
            [&] { host.callback.run(host.callback.user, parts, &run_host_part, &region); });
}

}  // namespace

// A host's loop costs as much as slices of 5 us gain: with two threads of torch four slices break
// even. On a busy machine the wait for the other thread is much longer than that.
parallel host_threads::as_parallel() {
  constexpr int slices_a_thread = 3;
  return parallel(this, &run_on_host, threads, slices_a_thread);
}

}  // namespace velo::core
