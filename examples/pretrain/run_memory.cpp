// Blocks of the pool with an owner each, and rehearsals.
#include "run_memory.hpp"

#include <algorithm>

#include "swapper.hpp"

namespace pretrain {
namespace {

// What buffers of a rehearsal point to: tensors of no rows, which nobody reads.
alignas(64) std::byte nothing[64];

constexpr double seconds_of_search = 1;

velo::pool make_pool() {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.kind = VELO_POOL_ORDINARY;
  return velo::pool::create(desc);
}

}  // namespace

buffer::~buffer() {
  if (object_ != 0) keeper_->forget(*this);
  if (data_ != nullptr && from_ != nullptr) from_->give(*this);
}

run_memory::run_memory(const memory_settings& asked) : pool_(make_pool()) {
  if (!asked.memory_snapshot.empty())
    snapshot_ = std::make_unique<memory_snapshot>(pool_, asked.memory_snapshot);
  if (asked.plan) plan_ = velo::plan::create(0, pool_);
  if (asked.memory_trace.empty()) return;
  trace_ = std::make_unique<memory_trace>(asked.memory_trace);
  const velo_allocator pool = pool_.allocator();
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  desc.kind = VELO_ADAPTOR_CALLBACK;
  desc.upstream = &pool;
  desc.event = [](void* to, velo_memory_event event, void* memory, uint64_t bytes,
                  void*) -> int32_t {
    if (event != VELO_MEMORY_FAILED)
      static_cast<memory_trace*>(to)->add(event == VELO_MEMORY_ALLOCATED ? "allocate" : "free",
                                          memory, static_cast<std::int64_t>(bytes));
    return 0;
  };
  desc.event_user = trace_.get();
  observer_ = velo::adaptor::create(desc);
}

buffer run_memory::ask(std::int64_t bytes, velo_purpose purpose, velo_lifetime lifetime) {
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  request.bytes = static_cast<std::uint64_t>(bytes);
  request.purpose = purpose;
  request.lifetime = lifetime;
  request.zero = lifetime == VELO_LIFETIME_LONG;
  buffer made;
  made.from_ = this;
  made.bytes_ = bytes;
  made.purpose_ = purpose;
  if (rehearsing_) {
    made.data_ = nothing;
  } else {
    const bool planned = plan_ && lifetime != VELO_LIFETIME_LONG;
    made.data_ =
        static_cast<std::byte*>(planned ? plan_.allocate(request) : pool_.allocate(request));
  }
  if (trace_ && !rehearsing_) trace_->add("allocate", made.data_, bytes);
  return made;
}

buffer run_memory::take(std::int64_t bytes, velo_purpose purpose) {
  buffer made = ask(bytes, purpose, VELO_LIFETIME_DEFAULT);
  if (!rehearsing_) return made;
  made.number_ = rehearsed_.size();
  rehearsed_.push_back({now_++, 0, bytes});
  return made;
}

buffer run_memory::keep(std::int64_t bytes, velo_purpose purpose) {
  return ask(bytes, purpose, VELO_LIFETIME_LONG);
}

void run_memory::give(const buffer& owner) noexcept {
  if (owner.data_ == nothing) {
    rehearsed_[owner.number_].end = now_++;
  } else {
    if (trace_) trace_->add("free", owner.data_, owner.bytes_);
    const auto bytes = static_cast<std::uint64_t>(owner.bytes_);
    plan_ ? plan_.free(owner.data_, bytes) : pool_.free(owner.data_, bytes);
  }
}

void run_memory::begin_step() {
  if (plan_) plan_.begin(planned_ ? VELO_PLAN_REPLAY : VELO_PLAN_RECORD);
}

void run_memory::end_step() {
  if (!plan_) return;
  plan_.end();
  if (!planned_) plan_.solve(seconds_of_search);
  planned_ = true;
}

std::vector<std::string> run_memory::end_records() {
  std::vector<std::string> failures;
  if (trace_) failures.push_back(trace_->finish());
  if (snapshot_) failures.push_back(snapshot_->finish());
  failures.erase(std::remove(failures.begin(), failures.end(), ""), failures.end());
  return failures;
}

void run_memory::begin_rehearsal() {
  rehearsing_ = true;
  now_ = 0;
  rehearsed_.clear();
}

std::vector<lifetime> run_memory::end_rehearsal() {
  rehearsing_ = false;
  return std::move(rehearsed_);
}

std::int64_t most_alive(const std::vector<lifetime>& all) {
  const velo::plan plan = velo::plan::create();
  for (const lifetime& each : all)
    plan.add(each.begin, each.end, static_cast<std::uint64_t>(each.bytes));
  return static_cast<std::int64_t>(plan.stats().lower_bound);
}

}  // namespace pretrain
