// Fork and join over a pool that promises nothing; see the header.
#include "capi/adapters/xla/threads.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "capi/adapters/host_context.hpp"

namespace velo::adapters {
namespace {

std::atomic<velo_context> on_xla{nullptr};
std::atomic<int> threads{1};  // of the context above

thread_local const xla::call_frame* current = nullptr;

// One parallel loop. A runner that comes after the end still finds it: the last one out frees it.
struct loop {
  std::atomic<std::int64_t> next{0}, done{0};
  std::int64_t tasks;
  void (*task)(void* user, std::int64_t index);
  void* user;
  std::atomic<int> holders;

  void work() {
    for (std::int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      task(user, i);
      done.fetch_add(1, std::memory_order_release);
    }
  }
  void leave() {
    if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

void run_one(void* data) {
  loop* shared = static_cast<loop*>(data);
  shared->work();
  shared->leave();
}

void discard(const xla::api* api, xla::error* failed) {
  if (failed == nullptr) return;
  xla::error_destroy_args args = {sizeof args, nullptr, failed};
  api->error_destroy(&args);
}

bool offer(const xla::call_frame& frame, loop* shared) {
  xla::schedule_args args = {sizeof args, nullptr, frame.ctx, run_one, shared};
  xla::error* refused = frame.api->thread_pool_schedule(&args);
  discard(frame.api, refused);
  return refused == nullptr;
}

void run_tasks(void*, std::int64_t tasks, void (*task)(void* user, std::int64_t index),
               void* user) {
  const xla::call_frame* frame = current;
  const std::int64_t most = std::min<std::int64_t>(tasks, threads.load()) - 1;
  loop* shared = frame != nullptr && most > 0 ? new (std::nothrow) loop : nullptr;
  if (shared == nullptr) {
    for (std::int64_t i = 0; i < tasks; ++i) task(user, i);
    return;
  }
  shared->tasks = tasks;
  shared->task = task;
  shared->user = user;
  shared->holders = static_cast<int>(most) + 1;
  for (std::int64_t i = 0; i < most; ++i) {
    if (!offer(*frame, shared)) shared->leave();
  }
  shared->work();
  for (int spin = 0; shared->done.load(std::memory_order_acquire) < tasks; ++spin) {
    if (spin > 2000) sched_yield();
  }
  shared->leave();
}

bool offers(const xla::api& api, std::size_t end_of_member) {
  return api.struct_size >= end_of_member;
}

int count_threads(const xla::call_frame& frame) {
  constexpr std::size_t end = offsetof(xla::api, thread_pool_count) + sizeof(void*);
  if (frame.api->version.minor >= 2 && offers(*frame.api, end) &&
      frame.api->thread_pool_count != nullptr) {
    std::int64_t count = 0;
    xla::thread_count_args args = {sizeof args, nullptr, frame.ctx, &count};
    xla::error* failed = frame.api->thread_pool_count(&args);
    discard(frame.api, failed);
    if (failed == nullptr && count > 0)
      return static_cast<int>(std::min<std::int64_t>(count, 1024));
  }
  return processors();
}

}  // namespace

xla_stream::xla_stream(const xla::call_frame& frame) {
  constexpr std::size_t end = offsetof(xla::api, thread_pool_schedule) + sizeof(void*);
  if (const velo_context given = supplied_context()) {
    stream_ = stream_of(given);
    return;
  }
  if (!offers(*frame.api, end) || frame.api->thread_pool_schedule == nullptr) {
    stream_ = default_stream();
    return;
  }
  velo_context there = on_xla.load();
  if (there == nullptr) {
    const int count = count_threads(frame);
    threads = count;
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    const velo_parallel_for loops = {sizeof loops, count, nullptr, run_tasks};
    desc.parallel_for = &loops;
    there = keep_one(on_xla, &desc);
  }
  stream_ = stream_of(there);
  current = &frame;
}

xla_stream::~xla_stream() {
  current = nullptr;
}

}  // namespace velo::adapters
