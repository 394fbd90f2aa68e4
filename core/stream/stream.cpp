// Inline streams, on which nothing is queued and no failure is kept.
#include "core/stream/stream.hpp"

namespace velo::core {

stream::stream(context& owner, mode how) : owner_(owner) {
  if (how == mode::queued) queue_.emplace(owner, *this, handle_of(*this), "velo/stream");
}

void stream::synchronize() {
  if (queue_.has_value()) queue_->synchronize();
}

bool stream::idle() const {
  return !queue_.has_value() || queue_->idle();
}

void stream::clear() noexcept {
  if (queue_.has_value()) queue_->clear();
}

void stream::pass(std::shared_ptr<point> here) {
  if (queue_.has_value()) {
    queue_->pass(std::move(here));
  } else {
    here->pass();
  }
}

void stream::record(event& on) {
  std::shared_ptr<point> here = on.next();
  pass(here);
  on.set(std::move(here));
}

void stream::wait(const event& on) {
  std::shared_ptr<point> until = on.last();
  if (queue_.has_value()) {
    queue_->wait_for(std::move(until));
  } else {
    await(*until, on.owner(), "event");
  }
}

void stream::await(point& until, const context& of, const char* argument) const {
  if (until.passed()) return;
  of.require_can_wait(argument);
  owner_.require_can_wait(argument);
  until.wait(-1);
}

}  // namespace velo::core
