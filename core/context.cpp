// Construction in an order that allows every later step to fail: memory, configuration, threads,
// inline stream.
#include "core/context.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "core/handle/inside.hpp"
#include "core/handle/record.hpp"
#include "core/stream/stream.hpp"

namespace velo::core {
namespace {

void run_here(void*, std::int64_t tasks, parallel::task_fn fn, void* user) {
  for (std::int64_t task = 0; task < tasks; ++task) fn(user, task, 0);
}

}  // namespace

constexpr parallel context::one_thread(nullptr, &run_here, 1);

context::context(const context_options& options)
    : device_(options.device),
      log_(options.log, options.log_user),
      memory_(memory_source::create(options.allocator)),
      config_(detect_isa(), options.log != nullptr ? VELO_LOG_WARN : VELO_LOG_OFF,
              options.kernel_names),
      caches_(detect_caches()),
      parallel_(nullptr, &run_here, 1),
      scratch_(*memory_) {
  if (options.threads != 0) config_.set("threads", text("%d", options.threads), "desc.threads");
  if (options.config_json != nullptr) config_.set_json(options.config_json, "desc.config_json");
  config_.read_environment();
  log_.set_level(config_.now().log);
  if (options.parallel_for != nullptr)
    host_ = std::make_unique<host_threads>(host_threads{*options.parallel_for, 1, nullptr});
  start_threads();
  log_.write(VELO_LOG_INFO, "context", "created: isa %s, %d threads%s, level %d", isa_name(isa()),
             parallel_.threads(), host_ ? " of the host" : "", optimization());
}

// Streams finish their work while the pool and the arena still exist. Packs, closures and events
// are destroyed after them.
context::~context() {
  destroy_owned();
  log_.write(VELO_LOG_INFO, "context", "destroyed after %s operator calls",
             number(calls_.load()).buffer);
}

void context::start_threads() {
  const int wanted = config_.now().threads;
  if (host_ != nullptr) {
    host_->threads =
        wanted > 0 ? std::min(wanted, host_->callback.threads) : host_->callback.threads;
    parallel_ = host_->as_parallel();
  } else {
    const int count = wanted > 0 ? wanted : usable_threads();
    parallel_ = parallel(nullptr, &run_here, 1);
    pool_.reset();
    if (count > 1) {
      pool_ = std::make_unique<thread_pool>(count);
      parallel_ = pool_->as_parallel();
    }
  }
  thread_count_.store(parallel_.threads(), std::memory_order_relaxed);
}

// The running waits of the thread, innermost first, in any context.
thread_local const context::waiting* context::innermost = nullptr;

context::waiting::waiting(const context& owner) : owner_(owner), outer_(innermost) {
  if (owner.turn_.held_by_me())
    fail(VELO_ERR_STATE, "stream", "work that waits, called outside of work that computes",
         "a call from work that has the context's turn");
  innermost = this;
}

context::waiting::~waiting() {
  innermost = outer_;
}

bool context::working_here() const noexcept {
  const waiting* at = innermost;
  while (at != nullptr && &at->owner_ != this) at = at->outer_;
  return at != nullptr || turn_.held_by_me();
}

bool context::holds_up_others() const noexcept {
  return turn_.held_by_me() || carries_for(handle());
}

void context::require_can_wait(const char* argument) const {
  if (holds_up_others())
    fail(VELO_ERR_STATE, argument, "a call from outside of work that others wait for",
         "one from work of its context");
}

const char* context::forced_kernel(const char* op) const noexcept {
  for (const settings::forced& f : config_.now().kernels)
    if (std::strcmp(f.op.c_str(), op) == 0) return f.kernel.empty() ? nullptr : f.kernel.c_str();
  return nullptr;
}

void context::configure(const char* key, const char* value) {
  if (std::strcmp(key, "threads") != 0) {
    config_.set(key, value, "value");
    log_.set_level(config_.now().log);
    return;
  }
  if (turn_.held_by_me())
    fail(VELO_ERR_STATE, "key", "threads set before any work ran", "work that is running");
  const std::lock_guard<turn_lock> turn(turn_);
  if (calls_.load(std::memory_order_relaxed) > 0)
    fail(VELO_ERR_STATE, "key", "threads set before any work ran", "a context that has worked");
  config_.set(key, value, "value");
  start_threads();
}

void context::fill(velo_context_stats& stats) const noexcept {
  stats.threads = thread_count_.load(std::memory_order_relaxed);
  stats.bytes_allocated = memory_->live();
  stats.bytes_peak = memory_->peak();
  stats.allocations = memory_->allocations();
  stats.operator_calls = calls_.load(std::memory_order_relaxed);
}

void context::complete(stream& made) noexcept {
  inline_ = &made;
  const void* const mine = handle_of(*this);
  set_handle(mine);
  log_.serve(mine);
  memory_->serve(mine);
  if (host_ != nullptr) host_->owner = mine;
}

context& make_context(const context_options& options) {
  context& made = make_object<context>(nullptr, options);
  try {
    made.complete(make_object<stream>(&made, made, stream::mode::immediate));
  } catch (...) {
    destroy_handle<context>(handle_of(made), "context");
    throw;
  }
  return made;
}

void log_misuse(const void* handle) noexcept {
  char line[900];
  record_text(last_record(), line, sizeof line);
  slot_header* owner = live_slot(owner_of_misused(handle), kinds::context);
  if (owner == nullptr) return warn_without_context("handle", line);
  object_in<context>(owner)->log().write(VELO_LOG_WARN, "handle", "%s", line);
}

}  // namespace velo::core
