// Streams and events: the order of work in a context.
//
// The inline stream runs work on the calling thread. A queue stream has one worker that runs its
// work in order; each piece takes the context's turn. The first failure of queued work is kept,
// what was queued behind it is dropped, and every later call but clear and destroy throws it. An
// event holds the last point recorded on it; a point is passed once, by the stream that reached it,
// and outlives the event for those that wait. Cost: inline, one turn; queued, one lock and a wake
// of the worker.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "core/context.hpp"

namespace velo::core {

// A piece of queued work.
struct work {
  work() = default;
  work(const work&) = delete;
  work& operator=(const work&) = delete;
  virtual ~work() = default;

  virtual void run(execution& state) = 0;
  virtual void process(
      context& owner);             // takes a turn and runs; what only waits or signals overrides it
  virtual void skip() noexcept {}  // called instead of process when an earlier failure drops this

  const char* function = "";  // static: the C function that queued it, for the record of a failure
  std::unique_ptr<work> next;
};

// A place in a stream's order.
class point {
 public:
  bool passed() const noexcept { return state_.load(std::memory_order_acquire) == reached; }
  void pass() noexcept;
  bool wait(std::int64_t timeout_ns) noexcept;  // < 0: for ever; false when the time is up

 private:
  enum state : std::uint32_t { open, awaited, reached };
  std::atomic<std::uint32_t> state_{open};
};

class event {
 public:
  explicit event(context& owner) : owner_(owner) {}

  context& owner() const noexcept { return owner_; }
  std::shared_ptr<point> last() const;  // throws VELO_ERR_STATE when never recorded
  void set(std::shared_ptr<point> recorded);

 private:
  context& owner_;
  mutable std::mutex lock_;
  std::shared_ptr<point> last_;
};

class stream {
 public:
  enum class mode { immediate, queued };

  stream(context& owner, mode how);  // a queue stream starts its worker
  ~stream();                         // finishes the queued work
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  context& owner() const noexcept { return owner_; }
  bool is_inline() const noexcept { return mode_ == mode::immediate; }
  bool is_worker() const noexcept {
    return worker_.is_current();
  }  // the caller is work of this stream

  // f(execution&) now, in the context's turn; for inline streams.
  template <class F>
  void run_inline(F&& f) {
    owner_.take_turn(std::forward<F>(f));
  }
  void enqueue(std::unique_ptr<work> piece);  // for queue streams; throws the kept failure

  void synchronize();  // until all work queued so far is done; throws the kept failure
  bool idle() const;   // throws the kept failure
  void clear() noexcept;

  void record(event& on);
  void wait(const event& on);

 private:
  static void* serve(void* self);
  std::unique_ptr<work> next_piece();  // nullptr: the stream is being destroyed and all is done
  void finish_piece() noexcept;
  void keep_failure(const work& failed) noexcept;
  void throw_kept() const;  // with the lock held

  context& owner_;
  mode mode_;
  native_thread worker_;
  mutable std::mutex lock_;
  std::condition_variable arrived_, finished_;
  std::unique_ptr<work> first_;
  work* last_ = nullptr;
  std::uint64_t submitted_count_ = 0, finished_count_ = 0;
  bool closing_ = false;
  failure kept_;  // code VELO_OK: none
};

template <>
struct handle_traits<stream> {
  using handle = velo_stream;
  static constexpr handle_kind& kind = kinds::stream;
};

template <>
struct handle_traits<event> {
  using handle = velo_event;
  static constexpr handle_kind& kind = kinds::event;
};

}  // namespace velo::core
