// The context: threads, memory, configuration and log of one host, and the turn in which work runs.
//
// All work that computes, inline or queued, runs under one turn lock, since there is one thread
// pool and one scratch arena. Work that waits runs beside it. Kernels and checks read the isa and
// forced kernels by a load from the published settings. Contexts share nothing. Cost of a turn:
// about 12 ns.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "core/attachments.hpp"
#include "core/config.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/host/arena.hpp"
#include "core/host/float_mode.hpp"
#include "core/host/memory.hpp"
#include "core/profile/profiling.hpp"
#include "core/stream/execution.hpp"
#include "core/stream/threads.hpp"
#include "core/stream/turn.hpp"
#include "core/text/log.hpp"

namespace velo::core {

class stream;

// The options of a context. velo copies what the pointers refer to and does not keep the pointers.
struct context_options {
  int threads = 0;
  velo_device device{VELO_DEVICE_CPU, 0};
  const velo_allocator* allocator = nullptr;
  const velo_parallel_for* parallel_for = nullptr;
  velo_log_fn log = nullptr;
  void* log_user = nullptr;
  const char* config_json = nullptr;
  config::kernel_names kernel_names = nullptr;
};

class context : public handle_owner {
 public:
  // make_context makes the inline stream, which needs the context's address and its own slot.
  explicit context(const context_options& options);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  velo_device device() const noexcept { return device_; }
  core::isa isa() const noexcept { return config_.now().isa; }
  int optimization() const noexcept { return config_.now().optimization; }
  core::counting counting() const noexcept { return config_.now().counting; }
  cache_sizes caches() const noexcept { return caches_; }
  // The kernel that the configuration forces for an operator, or nullptr. Valid as long as the
  // context.
  const char* forced_kernel(const char* op) const noexcept;

  const logger& log() const noexcept { return log_; }
  memory_source& memory() noexcept { return *memory_; }
  const config& configuration() const noexcept { return config_; }
  void configure(const char* key, const char* value);  // velo_config_set

  // An object that a layer above keeps here, made on first use. A const context provides it, too,
  // since it is not part of core's state.
  template <class T>
  T& attached() const {
    return attached_.get<T>();
  }

  // The profiling to which work reports its times. A const context provides it, like attachments.
  profiling& profile() const noexcept { return profile_; }

  stream& inline_stream() noexcept { return *inline_; }
  void complete(stream& made) noexcept;  // called by make_context

  void fill(velo_context_stats& stats) const noexcept;

  // Calls f(execution&) in the context's turn: f alone uses the pool and the scratch arena, which
  // is emptied afterwards.
  template <class F>
  void take_turn(stream& on, F&& f) {
    // Work inside work: its scratch memory stays until the outer work ends.
    if (turn_.held_by_me()) {
      count_call();
      execution state = run_state(on, parallel_, scratch_);
      f(state);
      return;
    }
    const std::lock_guard<turn_lock> turn(turn_);
    count_call();
    const float_mode standard;
    const scratch_reset after{scratch_};
    execution state = run_state(on, parallel_, scratch_);
    f(state);
  }

  // Calls f(execution&) at once and without the turn, on the calling thread alone. scratch: the
  // caller's, emptied afterwards. numbers: whether f does arithmetic (float_mode.hpp). Throws
  // VELO_ERR_STATE in work that computes, since that holds the turn.
  template <class F>
  void run_waiting(stream& on, arena& scratch, F&& f, bool numbers = true) {
    const waiting here(*this);
    const float_mode standard(numbers);
    const scratch_reset after{scratch};
    execution state = run_state(on, one_thread, scratch);
    f(state);
  }

  bool working_here() const noexcept;  // whether the caller is work of this context
  // Whether other work of this context may wait for the caller, which holds the turn, is queued
  // work, or runs a call.
  bool holds_up_others() const noexcept;
  // Throws VELO_ERR_STATE for such a caller, since the work that it would wait for may wait for it.
  void require_can_wait(const char* argument) const;

 private:
  struct memory_release {
    void operator()(memory_source* source) const noexcept { source->release(); }
  };

  // Marks the calling thread as inside work that waits.
  class waiting {
   public:
    explicit waiting(const context& owner);
    ~waiting();
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;

   private:
    friend class context;
    const context& owner_;
    const waiting* outer_;
  };

  static const parallel one_thread;
  static thread_local const waiting* innermost;

  void count_call() noexcept {  // in the turn, so no other thread writes it
    calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  execution run_state(stream& on, const parallel& threads, arena& scratch) noexcept {
    const settings& now = config_.now();
    return {*this, on, threads, scratch, now.isa, now.optimization, caches_};
  }
  void start_threads();

  velo_device device_;
  logger log_;
  std::unique_ptr<memory_source, memory_release> memory_;
  config config_;
  cache_sizes caches_;
  turn_lock turn_;
  std::unique_ptr<thread_pool> pool_;
  std::unique_ptr<host_threads> host_;
  parallel parallel_;
  arena scratch_;
  mutable attachments attached_;
  mutable profiling profile_;
  stream* inline_ = nullptr;
  std::atomic<std::uint64_t> calls_{0};  // calls that held the turn
  std::atomic<int> thread_count_{1};
};

template <>
struct handle_traits<context> {
  using handle = velo_context;
  static constexpr handle_kind& kind = kinds::context;
};

// A context with its inline stream, in its slot.
context& make_context(const context_options& options);

// Logs a warning, from this thread's record, that a destroy call got a handle that it cannot
// destroy. The log is that of the context which owns or owned the handle, if that context still
// exists.
void log_misuse(const void* handle) noexcept;

}  // namespace velo::core
