// Running the host's functions on a thread of their own, also after a timeout or the group's end.
#include <chrono>
#include <utility>

#include "comm/transport/host/engine.hpp"
#include "comm/transport/shared/rank_context.hpp"
#include "core/handle/inside.hpp"

namespace velo::comm {
namespace {

// A host function that respects the timeout gets this much longer, since it knows better which rank
// is late.
constexpr std::int64_t grace_ns = 100000000;

[[noreturn]] void fail_with(const char* why) {
  host_failure report;
  core::copy_text(report.text, sizeof report.text, why);
  throw report;
}

[[noreturn]] void fail_late(std::int64_t timeout_ns) {
  fail_with(core::text("a function of the host has not returned after %.6g ms",
                       static_cast<double>(timeout_ns) / 1e6));
}

constexpr const char* group_ended = "the group has ended";

}  // namespace

struct host_caller::state {
  explicit state(std::shared_ptr<host_engine> engine) : engine(std::move(engine)) {}

  const std::shared_ptr<host_engine> engine;
  std::mutex lock;  // guards the following members
  std::condition_variable moved;
  work next;
  core::inside_scope::list notes{};  // of the calling thread
  bool busy = false, ended = false, stopping = false, aborts = false;
  bool failed = false;
  host_failure report;

  void abort(std::unique_lock<std::mutex>& held, const char* why) {
    const velo_host_collectives& table = engine->table;
    if (table.abort == nullptr) return;
    held.unlock();
    try {
      table.abort(table.user, why);
    } catch (...) {  // the group has ended anyway
    }
    held.lock();
  }
};

host_caller::host_caller(std::shared_ptr<host_engine> engine)
    : state_(std::make_shared<state>(std::move(engine))) {
  auto kept = std::make_unique<std::shared_ptr<state>>(state_);
  thread_.start("velo/host", &serve, kept.get());
  static_cast<void>(kept.release());  // the thread owns it
}

host_caller::~host_caller() {
  bool busy = false;
  {
    const std::lock_guard<std::mutex> lock(state_->lock);
    state_->stopping = true;
    busy = state_->busy;
    state_->moved.notify_all();
  }
  busy ? thread_.detach() : thread_.join();
}

void* host_caller::serve(void* kept) {
  const std::unique_ptr<std::shared_ptr<state>> owned(static_cast<std::shared_ptr<state>*>(kept));
  state& with = **owned;
  std::unique_lock<std::mutex> lock(with.lock);
  while (true) {
    with.moved.wait(lock, [&] { return with.stopping || with.busy; });
    if (!with.busy) return nullptr;
    work what = std::move(with.next);
    core::inside_scope::take_over(with.notes);
    with.engine->until_ns_ = now_ns() + with.engine->timeout_ns;
    lock.unlock();
    host_failure report;
    bool failed = false;
    try {
      what(*with.engine);
    } catch (const host_failure& one) {
      failed = true;
      report = one;
    } catch (...) {
      failed = true;
      core::copy_text(report.text, sizeof report.text, core::current_failure().cause);
    }
    what = nullptr;  // frees its captures before the caller learns that the work is done
    lock.lock();
    with.failed = failed;
    with.report = report;
    if (with.aborts) with.abort(lock, group_ended);
    core::inside_scope::take_over({});
    with.busy = with.aborts = false;
    with.moved.notify_all();
  }
}

void host_caller::run(work what) {
  const std::int64_t timeout_ns = state_->engine->timeout_ns;
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns + grace_ns);
  std::unique_lock<std::mutex> lock(state_->lock);
  if (state_->ended) fail_with(group_ended);
  if (state_->busy) fail_late(timeout_ns);
  state_->next = std::move(what);
  state_->notes = core::inside_scope::notes();
  state_->busy = true;
  state_->moved.notify_all();
  const bool in_time =
      state_->moved.wait_until(lock, until, [&] { return !state_->busy || state_->ended; });
  if (!in_time) fail_late(timeout_ns);
  if (state_->busy) fail_with(group_ended);
  if (state_->failed) throw state_->report;
}

void host_caller::end(work last, const char* why) noexcept {
  std::unique_lock<std::mutex> lock(state_->lock);
  if (state_->ended) return;
  state_->ended = true;
  if (state_->busy || !last) {
    state_->abort(lock, why);
  } else {
    state_->next = std::move(last);
    state_->notes = core::inside_scope::notes();
    state_->busy = state_->aborts = true;
  }
  state_->moved.notify_all();
}

}  // namespace velo::comm
