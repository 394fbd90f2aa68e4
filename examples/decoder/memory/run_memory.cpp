// Allocation from the pool or the plan, regions, and dry runs.
#include "examples/decoder/memory/run_memory.hpp"

#include <algorithm>

#include "examples/decoder/memory/swapper.hpp"

namespace decoder {
namespace {

// Buffers of a dry run point here: their tensors have no rows, and no operator reads them.
alignas(64) std::byte nothing[64];

constexpr double seconds_of_search = 1;

velo::pool make_pool(velo_pool_kind kind) {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.kind = kind;
  return velo::pool::create(desc);
}

}  // namespace

buffer::~buffer() {
  if (object_ != 0) keeper_->forget(*this);
  if (region_ >= 0)
    from_->regions_.end(region_);
  else if (data_ != nullptr && from_ != nullptr)
    from_->give(*this);
}

void buffer::release() {
  if (region_ == no_region || data_ == nullptr) return;
  if (region_ >= 0)
    from_->regions_.release(region_);
  else
    from_->give(*this);
  data_ = nullptr;
}

run_memory::run_memory(const memory_settings& asked, velo_pool_kind kind)
    : pool_(make_pool(kind)), regions_(make_regions()) {
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

// velo would turn an exception of allocate into an error of its own; make throws the exception
// again.
velo::recompute run_memory::make_regions() {
  velo_allocator ours = VELO_ALLOCATOR_INIT;
  ours.user = this;
  ours.allocate = [](void* user, uint64_t bytes, uint64_t, const velo_device*, void*) -> void* {
    auto& me = *static_cast<run_memory*>(user);
    try {
      return me.allocate(static_cast<std::int64_t>(bytes), VELO_PURPOSE_ACTIVATION,
                         VELO_LIFETIME_DEFAULT);
    } catch (...) {
      me.failure_ = std::current_exception();
      return nullptr;
    }
  };
  ours.deallocate = [](void* user, void* memory, uint64_t bytes, const velo_device*, void*) {
    static_cast<run_memory*>(user)->deallocate(memory, static_cast<std::int64_t>(bytes));
  };
  return velo::recompute::create(ours);
}

velo_status run_memory::refill(void* user, const velo_recompute_call* call) {
  auto& me = *static_cast<run_memory*>(user);
  try {
    me.restored_->data_ = static_cast<std::byte*>(call->outputs[0]);
    me.refill_.run(me.refill_.user);
    return VELO_OK;
  } catch (...) {
    me.restored_->data_ = nullptr;
    me.failure_ = std::current_exception();
    return VELO_ERR_FOREIGN;
  }
}

void run_memory::begin_region(buffer& which, std::int64_t bytes) {
  // A rank may have no rows where there are fewer rows than ranks; a region needs a byte.
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1));
  velo_recompute_region region = VELO_RECOMPUTE_REGION_INIT;
  region.name = "activation";
  region.restore = refill;
  region.user = this;
  region.output_bytes = &size;
  region.output_count = 1;
  which.from_ = this;
  which.bytes_ = bytes;
  which.region_ = regions_.add(region);
  which.data_ = static_cast<std::byte*>(regions_.output(which.region_));
}

void run_memory::make(buffer& which, std::int64_t bytes, filling fill) {
  const std::int64_t region = which.region_;
  if (region == buffer::no_region || dry_run_) {
    which = take(bytes, VELO_PURPOSE_ACTIVATION);
    if (region != buffer::no_region) which.region_ = buffer::in_dry_run;
    fill.run(fill.user);
    return;
  }
  try {
    if (region >= 0) {
      restored_ = &which;
      refill_ = fill;
      regions_.restore(region);
    } else {
      begin_region(which, bytes);
      fill.run(fill.user);
    }
  } catch (...) {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    throw;
  }
}

void* run_memory::allocate(std::int64_t bytes, velo_purpose purpose, velo_lifetime lifetime) {
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  request.bytes = static_cast<std::uint64_t>(bytes);
  request.purpose = purpose;
  request.lifetime = lifetime;
  request.zero = lifetime == VELO_LIFETIME_LONG;
  const bool planned = plan_ && lifetime != VELO_LIFETIME_LONG;
  void* const made = planned ? plan_.allocate(request) : pool_.allocate(request);
  if (trace_) trace_->add("allocate", made, bytes);
  return made;
}

void run_memory::deallocate(void* memory, std::int64_t bytes) noexcept {
  if (trace_) trace_->add("free", memory, bytes);
  const auto size = static_cast<std::uint64_t>(bytes);
  plan_ ? plan_.free(memory, size) : pool_.free(memory, size);
}

buffer run_memory::ask(std::int64_t bytes, velo_purpose purpose, velo_lifetime lifetime) {
  buffer made;
  made.from_ = this;
  made.bytes_ = bytes;
  made.purpose_ = purpose;
  if (!dry_run_) {
    made.data_ = static_cast<std::byte*>(allocate(bytes, purpose, lifetime));
    return made;
  }
  made.data_ = nothing;
  made.number_ = dry_run_lifetimes_.size();
  dry_run_lifetimes_.push_back({now_++, 0, bytes});
  return made;
}

buffer run_memory::take(std::int64_t bytes, velo_purpose purpose) {
  return ask(bytes, purpose, VELO_LIFETIME_DEFAULT);
}

buffer run_memory::keep(std::int64_t bytes, velo_purpose purpose) {
  return ask(bytes, purpose, VELO_LIFETIME_LONG);
}

void run_memory::give(const buffer& owner) noexcept {
  if (owner.data_ == nothing)
    dry_run_lifetimes_[owner.number_].end = now_++;
  else
    deallocate(owner.data_, owner.bytes_);
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

void run_memory::begin_dry_run() {
  dry_run_ = true;
  now_ = 0;
  dry_run_lifetimes_.clear();
}

std::vector<lifetime> run_memory::end_dry_run() {
  dry_run_ = false;
  return std::move(dry_run_lifetimes_);
}

std::int64_t most_alive(const std::vector<lifetime>& all) {
  const velo::plan plan = velo::plan::create();
  for (const lifetime& each : all)
    plan.add(each.begin, each.end, static_cast<std::uint64_t>(each.bytes));
  return static_cast<std::int64_t>(plan.stats().lower_bound);
}

}  // namespace decoder
