// Events: points in the order of streams and lanes that other streams and lanes wait for.
//
// An event holds the last point recorded on it. A lane that reaches a point passes it, once;
// waiters keep the point alive beyond its event. An event reuses points that nobody else holds, so
// recording in a loop allocates nothing. Cost: a lock; passing a point without sleeping waiters is
// one atomic exchange.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace velo::core {

class context;

class point {
 public:
  bool passed() const noexcept { return state_.load(std::memory_order_acquire) == reached; }
  void pass() noexcept;
  bool wait(std::int64_t timeout_ns) noexcept;  // < 0: for ever; false: the time is up

  // Only the sole holder may call this.
  void reopen() noexcept { state_.store(open, std::memory_order_release); }

 private:
  enum state : std::uint32_t { open, awaited, reached };
  std::atomic<std::uint32_t> state_{open};
};

class event {
 public:
  explicit event(context& owner) : owner_(owner) {}

  context& owner() const noexcept { return owner_; }
  std::shared_ptr<point> last() const;  // throws VELO_ERR_STATE if never recorded

  // To record: queue the open point that next() returns, then set() it.
  std::shared_ptr<point> next();
  void set(std::shared_ptr<point> recorded);

 private:
  static constexpr int most_kept = 4;

  context& owner_;
  mutable std::mutex lock_;
  std::shared_ptr<point> last_;
  std::shared_ptr<point> kept_[most_kept];
};

}  // namespace velo::core
