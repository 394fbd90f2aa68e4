// The life of a profiler, and its events as data.
#include "core/profile/profiler.hpp"

#include "core/failure.hpp"

namespace velo::core {

profiler::profiler(context& owner, const velo_profiler_desc& desc)
    : owner_(owner),
      rank_(desc.rank),
      label_(desc.label != nullptr ? desc.label : text("rank %d", desc.rank).buffer),
      events_(desc.events) {
  if (!owner.profile().attach(events_, desc.level))
    fail(VELO_ERR_STATE, "context", "a context that no profiler records", "one that another does");
}

profiler::~profiler() {
  owner_.profile().detach(events_);
}

void profiler::begin(const char* text) {
  const std::lock_guard<std::mutex> lock(lock_);
  if (stopped_) fail(VELO_ERR_STATE, "profiler", "one that records", "one that has stopped");
  events_.begin_range(text);
}

void profiler::end() {
  const std::lock_guard<std::mutex> lock(lock_);
  if (!events_.end_range())
    fail(VELO_ERR_STATE, "profiler", "a range of this thread that has not ended", "none");
}

void profiler::stop() {
  const std::lock_guard<std::mutex> lock(lock_);
  if (stopped_) return;
  owner_.profile().detach(events_);
  events_.finish();
  stopped_ = true;
}

void profiler::require_stopped() const {
  const std::lock_guard<std::mutex> lock(lock_);
  if (!stopped_) fail(VELO_ERR_STATE, "profiler", "one that has stopped", "one that records");
}

void profiler::fill(velo_profiler_stats& to) const {
  const std::lock_guard<std::mutex> lock(lock_);
  to.events = events_.kept();
  to.dropped = events_.dropped();
  to.begin_ns = events_.begin_ns();
  to.end_ns = events_.end_ns();
}

void profiler::fill(std::int64_t index, velo_profiler_event& to) const {
  require_stopped();
  const auto count = static_cast<std::int64_t>(events_.kept());
  if (index < 0 || index >= count)
    fail(VELO_ERR_ARGUMENT, "index", concat("0 to ", count - 1), number(index));
  const profile_event& e = events_.events()[static_cast<std::size_t>(index)];
  to.kind = static_cast<velo_profiler_kind>(e.kind);
  to.thread = e.thread;
  to.begin_ns = events_.ns_at(e.begin);
  to.end_ns = events_.ns_at(e.end);
  to.name = name_of(e);
  to.detail = detail_of(e);
  to.flops = e.flops;
  to.bytes = e.bytes;
}

}  // namespace velo::core
