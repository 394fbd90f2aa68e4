// The thread's loop, the kept failure, and the two markers by which points enter a queue.
#include "core/stream/lane.hpp"

#include <utility>

#include "core/context.hpp"
#include "core/handle/inside.hpp"

namespace velo::core {
namespace {

struct wait_marker final : work {
  explicit wait_marker(std::shared_ptr<point> until)
      : work(demand::waits), until_(std::move(until)) {}
  void run(execution& state) override {
    const profiled_wait here(state.context.profile(), "event");
    until_->wait(-1);
  }

 private:
  std::shared_ptr<point> until_;
};

// Passes a point. It does so also when it is dropped, since the waiters of a point that is never
// passed would hang.
struct pass_marker final : work {
  explicit pass_marker(std::shared_ptr<point> here) : work(demand::waits), here_(std::move(here)) {}
  void run(execution&) override { here_->pass(); }
  void skip() noexcept override { here_->pass(); }

 private:
  std::shared_ptr<point> here_;
};

}  // namespace

lane::lane(context& owner, stream& on, const void* of, const char* name)
    : owner_(owner), on_(on), of_(of), scratch_(owner.memory()) {
  thread_.start(name, &serve, this);
}

lane::~lane() {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    closing_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

void* lane::serve(void* argument) {
  auto& self = *static_cast<lane*>(argument);
  const inside_scope mine(self.of_, part::carries);
  while (work_ptr<work> piece = self.next_piece()) {
    try {
      self.process(*piece);
    } catch (...) {
      self.keep_failure(*piece);
    }
    piece.reset();  // before waiters learn that the work is done
    self.finish_piece();
  }
  return nullptr;
}

// Records how long a piece of work was in the queue.
void lane::report_queued(const work& piece) noexcept {
  profile_event e;
  e.begin = piece.submitted_;
  e.name = "queue";
  e.detail = piece.function;
  e.kind = profiled::wait;
  owner_.profile().add(e);
}

void lane::process(work& piece) {
  if (piece.submitted_ != 0 && piece.function[0] != '\0') report_queued(piece);
  const auto body = [&](execution& state) { piece.run(state); };
  if (piece.what == demand::waits) {
    owner_.run_waiting(on_, scratch_, body);
  } else {
    owner_.take_turn(on_, body);
  }
}

work_ptr<work> lane::next_piece() {
  std::unique_lock<std::mutex> lock(lock_);
  arrived_.wait(lock, [this] { return first_ != nullptr || closing_; });
  work_ptr<work> piece(first_);
  if (piece != nullptr) first_ = piece->next_;
  if (first_ == nullptr) last_ = nullptr;
  return piece;
}

void lane::finish_piece() noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  ++finished_count_;
  finished_.notify_all();
}

// Called in the catch block. Drops the work queued behind the failure at once, so that it does not
// run after a clear.
void lane::keep_failure(const work& failed) noexcept {
  failure what = current_failure();
  if (what.function[0] == 0) copy_text(what.function, sizeof what.function, failed.function);
  work* dropped = nullptr;
  {
    const std::lock_guard<std::mutex> lock(lock_);
    kept_ = what;
    dropped = std::exchange(first_, nullptr);
    last_ = nullptr;
  }
  owner_.log().write(VELO_LOG_ERROR, "stream", "queued work of %s failed: %s%s%s", what.function,
                     what.argument, what.argument[0] != 0 ? ": " : "",
                     what.cause[0] != 0 ? what.cause : what.got);
  std::uint64_t count = 0;
  while (dropped != nullptr) {
    const work_ptr<work> piece(std::exchange(dropped, dropped->next_));
    piece->skip();
    ++count;
  }
  const std::lock_guard<std::mutex> lock(lock_);
  finished_count_ += count;
}

void lane::throw_kept() const {
  if (kept_.code != VELO_OK) throw failure(kept_);
}

// Refuses instead of waiting, since the queued work may wait for the caller's next action.
void lane::refuse_when_full(int pieces) const {
  const int most = owner_.configuration().now().queue;
  const std::uint64_t held = submitted_count_ - finished_count_;
  if (held + static_cast<std::uint64_t>(pieces) <= static_cast<std::uint64_t>(most)) return;
  fail(VELO_ERR_FULL, "stream", text("at most %d pieces of queued work, the key queue", most),
       concat(pieces == 1 ? text("one") : number(pieces), " more than the ", held, " it holds"));
}

void lane::require_room(int pieces) const {
  const std::lock_guard<std::mutex> lock(lock_);
  throw_kept();
  refuse_when_full(pieces);
}

void lane::submit(work_ptr<work> piece) {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    throw_kept();
    refuse_when_full(1);
    ++submitted_count_;
    if (owner_.profile().has_waits()) piece->submitted_ = ticks_now();
    work* added = piece.release();
    (last_ == nullptr ? first_ : last_->next_) = added;
    last_ = added;
  }
  arrived_.notify_one();
}

void lane::pass(std::shared_ptr<point> here) {
  submit(make<pass_marker>(std::move(here)));
}

void lane::wait_for(std::shared_ptr<point> until) {
  submit(make<wait_marker>(std::move(until)));
}

void lane::synchronize() {
  if (is_current())
    fail(VELO_ERR_STATE, "stream", "a stream other than the one that calls",
         "the stream's own work");
  const profiled_wait here(owner_.profile(), "synchronize");
  std::unique_lock<std::mutex> lock(lock_);
  const std::uint64_t until = submitted_count_;
  finished_.wait(lock, [&] { return finished_count_ >= until; });
  throw_kept();
}

bool lane::idle() const {
  const std::lock_guard<std::mutex> lock(lock_);
  throw_kept();
  return finished_count_ == submitted_count_;
}

void lane::clear() noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  kept_ = failure{};
}

}  // namespace velo::core
