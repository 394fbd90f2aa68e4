// Objects: the checks and state changes of each call. copies.cpp queues and runs the copies.
#include "memory/swap/swap.hpp"

#include <algorithm>
#include <utility>

#include "core/context.hpp"
#include "core/failure.hpp"
#include "memory/swap/disk_tier.hpp"
#include "memory/swap/host_tier.hpp"

namespace velo::memory {

using core::fail;

namespace {

[[noreturn]] void refuse_number(std::uint64_t id) {
  fail(VELO_ERR_ARGUMENT, "object", "the number of an object", core::number(id));
}

std::unique_ptr<tier> make_tier(core::context& owner, const velo_swap_desc& desc) {
  if (desc.tier == VELO_SWAP_DISK) return std::make_unique<disk_tier>(owner.memory(), desc);
  return std::make_unique<host_tier>(desc.pool);
}

}  // namespace

// Ends an object after its queued copies.
struct swap::discard final : core::work {
  discard(swap& home, object_ptr of) : work(core::demand::waits), home(home), of(std::move(of)) {}

  void run(core::execution&) override {
    for (const auto& point : after)
      if (point != nullptr) point->wait(-1);
    const std::lock_guard<std::mutex> lock(of->lock);
    home.give_up(*of);
    if (of->owned) home.release(*of, std::exchange(of->memory, nullptr), nullptr);
  }

  swap& home;
  const object_ptr of;
  std::shared_ptr<core::point> after[2];  // or nullptr
};

// A stream's wait for a copy. With `contents` a failed copy fails the stream. A stream that has
// failed waits, too: after its synchronization no copy uses the caller's memory.
struct swap::awaited final : core::work {
  explicit awaited(std::shared_ptr<const job> of, bool contents = true)
      : work(core::demand::waits), of(std::move(of)), contents(contents) {}
  void run(core::execution&) override {
    of->passed->wait(-1);
    if (contents && of->failed.code != VELO_OK) throw core::failure(of->failed);
  }
  void skip() noexcept override { of->passed->wait(-1); }

  const std::shared_ptr<const job> of;
  const bool contents;
};

swap::swap(core::context& owner, const velo_swap_desc& desc)
    : owner_(owner),
      memory_(desc.memory),
      limit_(desc.limit),
      minimum_(desc.minimum),
      tier_(make_tier(owner, desc)) {
  out_.emplace(owner, owner.inline_stream(), core::handle_of(*this), "velo/swap_out");
  in_.emplace(owner, owner.inline_stream(), core::handle_of(*this), "velo/swap_in");
}

swap::~swap() {
  out_.reset();  // first, since its work may wait for work of the other lane
  in_.reset();
  step_.reset();
  for (const auto& [id, o] : objects_) {
    o->image.reset();
    if (o->owned) release(*o, o->memory, nullptr);
  }
}

// Frees an object's memory, unless it was already freed elsewhere.
void swap::release(const object& o, char* memory, velo_stream stream) noexcept {
  if (memory == nullptr) return;
  try {
    free_to(memory_, memory, o.bytes, stream);
  } catch (const core::failure& why) {
    owner_.log().write(VELO_LOG_WARN, "swap", "%s",
                       core::concat("memory of object ", o.id, ": ", why.got).buffer);
  } catch (...) {
    return;
  }
}

swap::object_ptr swap::find(std::uint64_t id) const {
  const std::lock_guard<std::mutex> lock(lock_);
  const auto found = objects_.find(id);
  if (found == objects_.end()) refuse_number(id);
  return found->second;
}

// Another thread may have dropped an object since it was found.
void swap::require_known(const object& o) const {
  if (o.dropped) refuse_number(o.id);
}

std::uint64_t swap::add(void* memory, std::uint64_t bytes, bool cold) {
  const bool owned = memory == nullptr;
  if (owned && memory_ == nullptr)
    fail(VELO_ERR_STATE, "memory", "memory, or a swap with a pool for it", "NULL");
  void* mine = owned ? allocate_from(memory_, bytes) : memory;
  try {
    const std::lock_guard<std::mutex> lock(lock_);
    objects_.emplace(
        next_id_, std::make_shared<object>(next_id_, bytes, static_cast<char*>(mine), owned, cold));
    return next_id_++;
  } catch (...) {
    if (owned) free_to(memory_, mine, bytes, nullptr);
    throw;
  }
}

void swap::require_droppable(const object& o) const {
  require_known(o);
  if (o.updating) fail(VELO_ERR_STATE, "object", "an object in no update", "one in an update");
}

// Drops an object without queued copies at once; any other object is dropped after its last copy
// and the stream. No copy may touch the caller's memory after the call gives it back, so on an
// inline stream the call waits.
void swap::drop(std::uint64_t id, velo_stream stream) {
  const object_ptr o = find(id);
  const bool waits_here =
      !o->owned && (stream == nullptr || core::resolve<core::stream>(stream, "stream").is_inline());
  std::unique_lock<std::mutex> lock(o->lock);
  require_droppable(*o);
  while (waits_here && o->queued > 0) {
    const std::shared_ptr<const job> last = o->last;
    lock.unlock();
    await(last, owner_.inline_stream(), "velo_swap_drop", false);
    lock.lock();
    require_droppable(*o);
  }
  if (o->queued > 0) {
    drop_behind(o, stream);
  } else {
    if (o->owned && o->memory != nullptr) free_to(memory_, o->memory, o->bytes, stream);
    o->memory = nullptr;
    give_up(*o);
  }
  o->dropped = true;
  const std::lock_guard<std::mutex> tables(lock_);
  objects_.erase(id);
}

// The caller holds the object's lock. reached: awaited as well, or nullptr.
core::work_ptr<swap::discard> swap::discarded(const object_ptr& o,
                                              std::shared_ptr<core::point> reached) {
  core::work_ptr<discard> piece = in_->make<discard>(*this, o);
  piece->after[0] = o->last->passed;
  piece->after[1] = std::move(reached);
  return piece;
}

// The caller holds the object's lock. Drops the tier's copy after the object's copies are done.
void swap::discard_behind(const object_ptr& o) {
  in_->submit(discarded(o, nullptr));
}

// The caller holds the object's lock.
void swap::drop_behind(const object_ptr& o, velo_stream stream) {
  auto reached = std::make_shared<core::point>();
  core::work_ptr<discard> piece = discarded(o, reached);
  if (o->owned && stream != nullptr) {
    core::resolve<core::stream>(stream, "stream").pass(std::move(reached));
  } else {
    reached->pass();
  }
  if (!o->owned) {
    core::stream& user = core::resolve<core::stream>(stream, "stream");
    core::work_ptr<awaited> end = user.make<awaited>(o->last, false);
    end->function = "velo_swap_drop";
    user.enqueue(std::move(end));
  }
  in_->submit(std::move(piece));
}

// A failed object refuses every call except the same copy again.
void swap::require(const object& o, direction to) const {
  const bool leaves = to == direction::out;
  require_known(o);
  if (o.failed.code != VELO_OK && (o.queued > 0 || o.resident_later != leaves))
    throw core::failure(o.failed);
  if (o.updating) fail(VELO_ERR_STATE, "object", "an object in no update", "one in an update");
  if (o.resident_later != leaves)
    fail(VELO_ERR_STATE, "object",
         leaves ? "an object in memory, or on its way there" : "an object that is out, or leaving",
         leaves ? "one that is out" : "one in memory");
}

void swap::out(std::uint64_t id, core::stream& after, core::event* end) {
  const object_ptr o = find(id);
  const std::lock_guard<std::mutex> lock(o->lock);
  require(*o, direction::out);
  queue(o, direction::out, o->memory, after, end);
}

void swap::in(std::uint64_t id, void* memory, core::stream& after, core::event* end) {
  const object_ptr o = find(id);
  if (o->owned && memory != nullptr)
    fail(VELO_ERR_ARGUMENT, "memory", "NULL: the object's memory is the pool's", "a pointer");
  void* to = o->owned ? allocate_from(memory_, o->bytes) : memory;
  try {
    const std::lock_guard<std::mutex> lock(o->lock);
    require(*o, direction::in);
    if (to == nullptr) to = o->memory;
    queue(o, direction::in, static_cast<char*>(to), after, end);
    o->memory = static_cast<char*>(to);
  } catch (...) {
    if (o->owned) release(*o, static_cast<char*>(to), nullptr);
    throw;
  }
}

// The caller holds the object's lock.
void swap::give_up(object& o) noexcept {
  if (o.image == nullptr) return;
  o.image.reset();
  o.stored = false;
  let_go(o);
}

// Counts an object as held by the tier from the beginning of its copy out.
void swap::hold(const object& o) {
  const std::lock_guard<std::mutex> lock(lock_);
  if (limit_ != 0 && counted_.held + o.bytes > limit_)
    fail(VELO_ERR_MEMORY, "", core::concat(limit_, " bytes in the tier at most, desc.limit"),
         core::concat(o.bytes, " more than the ", counted_.held, " it holds"));
  counted_.held += o.bytes;
  ++counted_.objects_out;
  counted_.peak = std::max(counted_.peak, counted_.held);
}

void swap::let_go(const object& o) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  counted_.held -= o.bytes;
  --counted_.objects_out;
}

void swap::count_bytes(direction to, std::uint64_t bytes) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  counted_.bytes[static_cast<int>(to)] += bytes;
}

void swap::count_seconds(direction to, double seconds) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  counted_.seconds[static_cast<int>(to)] += seconds;
}

void swap::count_failure() noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  ++counted_.failures;
}

void swap::wait(std::uint64_t id, core::stream& waiting) {
  const object_ptr o = find(id);
  std::shared_ptr<const job> end;
  {
    const std::lock_guard<std::mutex> lock(o->lock);
    require_known(*o);
    if (o->queued == 0 && o->failed.code != VELO_OK) throw core::failure(o->failed);
    if (o->queued == 0) return;
    end = o->last;  // a copy dropped behind a failed one has the same failure
  }
  await(std::move(end), waiting, "velo_swap_wait", true);
}

void swap::await(std::shared_ptr<const job> of, core::stream& waiting, const char* function,
                 bool contents) {
  if (waiting.is_inline()) {
    waiting.await(*of->passed, owner_, "swap");
    if (contents && of->failed.code != VELO_OK) throw core::failure(of->failed);
    return;
  }
  core::work_ptr<awaited> piece = waiting.make<awaited>(std::move(of), contents);
  piece->function = function;
  waiting.enqueue(std::move(piece));
}

void swap::fill(std::uint64_t id, velo_swap_object& info) const {
  const object_ptr o = find(id);
  const std::lock_guard<std::mutex> lock(o->lock);
  if (o->updating) {
    info.state = VELO_SWAP_UPDATING;
  } else if (o->queued > 0) {
    info.state = o->resident_later ? VELO_SWAP_RETURNING : VELO_SWAP_LEAVING;
  } else {
    info.state = o->resident_later ? VELO_SWAP_RESIDENT : VELO_SWAP_OUT;
  }
  info.memory = o->memory;
  info.bytes = o->bytes;
  info.bytes_stored = o->image != nullptr ? o->image->stored() : 0;
  info.layer = o->layer;
}

void swap::fill(velo_swap_stats& stats) const {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    stats.objects = objects_.size() + counted_.planned;
    stats.objects_out = counted_.objects_out;
    stats.bytes_held = counted_.held;
    stats.bytes_peak = counted_.peak;
    stats.bytes_out = counted_.bytes[0];
    stats.bytes_in = counted_.bytes[1];
    stats.failures = counted_.failures;
    stats.seconds_out = counted_.seconds[0];
    stats.seconds_in = counted_.seconds[1];
  }
  tier_->fill(stats);
}

}  // namespace velo::memory
