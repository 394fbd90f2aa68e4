// The worker's loop, the kept failure, and the two markers that events put into a queue.
#include "core/stream.hpp"

#include <time.h>

#include <climits>
#include <utility>

#include "core/failure.hpp"
#include "core/futex.hpp"

namespace velo::core {
namespace {

// Waits for another stream's point, without holding the turn: the other stream needs it to get
// there.
struct wait_marker final : work {
  explicit wait_marker(std::shared_ptr<point> until) : until_(std::move(until)) {}
  void run(execution&) override {}
  void process(context&) override { until_->wait(-1); }

 private:
  std::shared_ptr<point> until_;
};

// Passes a point; also when dropped, since a point that is never reached would hang whoever waits
// for it.
struct record_marker final : work {
  explicit record_marker(std::shared_ptr<point> here) : here_(std::move(here)) {}
  void run(execution&) override {}
  void process(context&) override { here_->pass(); }
  void skip() noexcept override { here_->pass(); }

 private:
  std::shared_ptr<point> here_;
};

std::int64_t now_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000000000} + now.tv_nsec;
}

}  // namespace

void work::process(context& owner) {
  owner.take_turn([this](execution& state) { run(state); });
}

void point::pass() noexcept {
  if (state_.exchange(reached, std::memory_order_acq_rel) == awaited) futex_wake(state_, INT_MAX);
}

bool point::wait(std::int64_t timeout_ns) noexcept {
  const std::int64_t begin = timeout_ns > 0 ? now_ns() : 0;
  while (true) {
    std::uint32_t seen = state_.load(std::memory_order_acquire);
    if (seen == reached) return true;
    if (timeout_ns == 0) return false;
    if (seen == open && !state_.compare_exchange_strong(seen, awaited, std::memory_order_acq_rel))
      continue;
    if (timeout_ns < 0) {
      futex_wait(state_, awaited);
      continue;
    }
    const std::int64_t left = timeout_ns - (now_ns() - begin);
    if (left <= 0) return passed();
    const timespec time{static_cast<time_t>(left / 1000000000),
                        static_cast<long>(left % 1000000000)};
    futex_wait(state_, awaited, &time);
  }
}

std::shared_ptr<point> event::last() const {
  const std::lock_guard<std::mutex> lock(lock_);
  if (last_ == nullptr) fail(VELO_ERR_STATE, "event", "a recorded event", "one never recorded");
  return last_;
}

void event::set(std::shared_ptr<point> recorded) {
  const std::lock_guard<std::mutex> lock(lock_);
  last_.swap(recorded);
}

stream::stream(context& owner, mode how) : owner_(owner), mode_(how) {
  if (mode_ == mode::queued) worker_.start("velo/stream", &serve, this);
}

stream::~stream() {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    closing_ = true;
  }
  arrived_.notify_one();
  worker_.join();
}

void* stream::serve(void* argument) {
  auto& self = *static_cast<stream*>(argument);
  while (std::unique_ptr<work> piece = self.next_piece()) {
    try {
      piece->process(self.owner_);
    } catch (...) {
      self.keep_failure(*piece);
    }
    piece.reset();  // before anybody is told that the work is done
    self.finish_piece();
  }
  return nullptr;
}

std::unique_ptr<work> stream::next_piece() {
  std::unique_lock<std::mutex> lock(lock_);
  arrived_.wait(lock, [this] { return first_ != nullptr || closing_; });
  std::unique_ptr<work> piece = std::move(first_);
  if (piece != nullptr) first_ = std::move(piece->next);
  if (first_ == nullptr) last_ = nullptr;
  return piece;
}

void stream::finish_piece() noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  ++finished_count_;
  finished_.notify_all();
}

// Called in the catch block. What is queued behind the failure is dropped at once, so that a clear
// lets nothing of it run.
void stream::keep_failure(const work& failed) noexcept {
  failure what = current_failure();
  if (what.function[0] == 0) copy_text(what.function, sizeof what.function, failed.function);
  std::unique_ptr<work> dropped;
  {
    const std::lock_guard<std::mutex> lock(lock_);
    kept_ = what;
    dropped = std::move(first_);
    last_ = nullptr;
  }
  owner_.log().write(VELO_LOG_ERROR, "stream", "queued work of %s failed: %s%s%s", what.function,
                     what.argument, what.argument[0] != 0 ? ": " : "",
                     what.cause[0] != 0 ? what.cause : what.got);
  std::uint64_t count = 0;
  while (dropped != nullptr) {
    dropped->skip();
    dropped = std::unique_ptr<work>(std::move(dropped->next));
    ++count;
  }
  const std::lock_guard<std::mutex> lock(lock_);
  finished_count_ += count;
}

void stream::throw_kept() const {
  if (kept_.code != VELO_OK) throw failure(kept_);
}

void stream::enqueue(std::unique_ptr<work> piece) {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    throw_kept();
    ++submitted_count_;
    work* added = piece.get();
    (last_ == nullptr ? first_ : last_->next) = std::move(piece);
    last_ = added;
  }
  arrived_.notify_one();
}

void stream::synchronize() {
  if (is_worker())
    fail(VELO_ERR_STATE, "stream", "a stream other than the one that calls",
         "the stream's own work");
  std::unique_lock<std::mutex> lock(lock_);
  const std::uint64_t until = submitted_count_;
  finished_.wait(lock, [&] { return finished_count_ >= until; });
  throw_kept();
}

bool stream::idle() const {
  const std::lock_guard<std::mutex> lock(lock_);
  throw_kept();
  return finished_count_ == submitted_count_;
}

void stream::clear() noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  kept_ = failure{};
}

void stream::record(event& on) {
  auto here = std::make_shared<point>();
  if (is_inline()) {
    here->pass();
  } else {
    enqueue(std::make_unique<record_marker>(here));
  }
  on.set(std::move(here));
}

void stream::wait(const event& on) {
  std::shared_ptr<point> until = on.last();
  if (is_inline()) {
    until->wait(-1);
  } else {
    enqueue(std::make_unique<wait_marker>(std::move(until)));
  }
}

}  // namespace velo::core
