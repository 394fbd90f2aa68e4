// Streams: the order of work in a context.
//
// The inline stream runs work on the calling thread; any other stream is a lane, a queue with a
// thread. Work that computes takes the context's turn; work that waits does not, and on the inline
// stream blocks the caller. Cost: inline, one turn; queued, see lane.hpp.
#pragma once

#include <optional>
#include <utility>

#include "core/context.hpp"
#include "core/stream/event.hpp"
#include "core/stream/lane.hpp"

namespace velo::core {

class stream {
 public:
  enum class mode { immediate, queued };

  // A queue stream starts its thread, and ends after its queued work.
  stream(context& owner, mode how);
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  context& owner() const noexcept { return owner_; }
  bool is_inline() const noexcept { return !queue_.has_value(); }
  bool is_worker() const noexcept {  // the caller is queued work of this stream
    return queue_.has_value() && queue_->is_current();
  }

  // Runs f(execution&) in the context's turn. Inline streams only.
  template <class F>
  void run_inline(F&& f) {
    owner_.take_turn(*this, std::forward<F>(f));
  }
  // Runs f(execution&) without the turn. Inline streams only. Throws VELO_ERR_STATE if the caller
  // is work that computes, which holds the turn, so that all other work would wait, too.
  template <class F>
  void run_waiting(F&& f, bool numbers = true) {
    arena scratch(owner_.memory());
    owner_.run_waiting(*this, scratch, std::forward<F>(f), numbers);
  }

  // Queue streams only. The caller submits or drops the result before the stream is destroyed.
  template <class W, class... Args>
  work_ptr<W> make(Args&&... args) {
    return queue_->make<W>(std::forward<Args>(args)...);
  }
  template <class W, class... Args>
  work_ptr<W> make_before(std::size_t bytes, Args&&... args) {
    return queue_->make_before<W>(bytes, std::forward<Args>(args)...);
  }
  void enqueue(work_ptr<work> piece) { queue_->submit(std::move(piece)); }
  // For a call of several pieces of work, before the first: throws what enqueue() would throw for
  // any of them while no other thread queues work here. Inline streams have room for any number.
  void require_room(int pieces) const {
    if (queue_.has_value()) queue_->require_room(pieces);
  }

  // Runs a call of a C function. An inline stream runs now(execution&) before this returns; a queue
  // runs the piece of work that make() returns. put(piece, enqueue) may first reserve the call's
  // position in some order, and then calls enqueue(), after which the piece may be gone.
  struct call_mode {
    demand what = demand::computes;
    bool numbers = true;  // for work that waits, as for run_waiting
  };
  template <class Now, class Make, class Put>
  void call(call_mode how, Now&& now, Make&& make, Put&& put) {
    if (is_inline()) {
      if (how.what == demand::waits) return run_waiting(now, how.numbers);
      return run_inline(now);
    }
    auto piece = make();
    auto& made = *piece;
    put(made, [&] { enqueue(std::move(piece)); });
  }
  template <class Now, class Make>
  void call(call_mode how, Now&& now, Make&& make) {
    call(how, now, make, [](auto&, auto&& enqueue) { enqueue(); });
  }

  void synchronize();  // until all work queued so far is done; throws the kept failure
  bool idle() const;   // throws the kept failure
  void clear() noexcept;

  void pass(std::shared_ptr<point> here);  // when all work submitted so far is done
  void record(event& on);
  void wait(const event& on);
  // The caller waits for the point, which a lane of `of` passes. Inline streams only. Unless the
  // point has passed, throws VELO_ERR_STATE in work of either context that others may wait for.
  void await(point& until, const context& of, const char* argument) const;

 private:
  context& owner_;
  std::optional<lane> queue_;
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
