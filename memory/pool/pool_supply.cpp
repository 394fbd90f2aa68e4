// From a request that no cache served to its block, top to bottom.
#include "memory/pool/pool_supply.hpp"

#include <algorithm>
#include <memory>

#include "core/failure.hpp"
#include "core/handle/host_call.hpp"
#include "core/handle/inside.hpp"

namespace velo::memory {

using core::fail;
using core::text;

namespace {

constexpr std::int64_t stream_timeout_ns = 1000000000;  // before a request fails
constexpr int most_retries = 16;  // calls of the pressure function that freed nothing (pool.h)

}  // namespace

pool_supply::pool_supply(const velo_pool_desc& desc, pool_backend& blocks, thread_caches& threads,
                         pool_history& history) noexcept
    : blocks_(blocks),
      threads_(threads),
      history_(history),
      pressure_(desc.pressure),
      pressure_user_(desc.pressure_user),
      limit_(desc.limit) {}

block* pool_supply::obtain(const pool_request& request, std::uint64_t size,
                           std::unique_lock<brief_lock>& lock) {
  int retries = 0;
  while (true) {
    if (block* found = find(request, size)) return found;
    if (blocks_.empty_quarantine()) continue;
    threads_.request_drains();
    if (wait_for_stream(lock) || ask_host(request.bytes, retries, lock)) continue;
    refuse(request);
  }
}

// nullptr: the system or the limit refuses.
block* pool_supply::find(const pool_request& request, std::uint64_t size) noexcept {
  heap& from = blocks_.heap_for(request.lifetime);
  taken_bytes_ += size;
  // Work of the same stream runs after the work that still uses a pending block. Zeroing and the
  // checked mode's fill would be done now, before that work ends, so they need another block.
  if (request.stream != nullptr && !request.zero && !blocks_.is_checked()) {
    block* b = blocks_.take_pending(request.lifetime, request.stream, size, request.alignment);
    if (b != nullptr) return b;
  }
  block* b = from.take(size, request.alignment);
  if (b == nullptr && blocks_.reclaim()) b = from.take(size, request.alignment);
  return b != nullptr ? b : find_new(from, size, request.alignment);
}

// Memory of free blocks replaces new memory where the pool would hold more than ever before, or
// more than its limit, or where the system has none. Pages that can be moved are moved once the new
// block has addresses; others are trimmed first. Nothing is done if that cannot help.
block* pool_supply::find_new(heap& from, std::uint64_t size, std::uint64_t alignment) noexcept {
  if (limit_ != 0 && blocks_.reserved() - blocks_.free_bytes() + size > limit_) return nullptr;
  const bool moves = from.range().can_move();
  if (!moves) {
    const heap::growth first = from.plan_growth(size, alignment);
    const std::uint64_t spread = bytes_to_recycle(first, size), begin = core::ticks_now();
    recycled_ += blocks_.trim(spread, first.joined);
    if (spread > 0) recycling_ticks_ += core::ticks_now() - begin;
  }
  while (true) {
    const heap::growth planned = from.plan_growth(size, alignment);
    if (planned.into == nullptr) return nullptr;
    const std::uint64_t after = blocks_.reserved() + planned.bytes();
    const std::uint64_t beyond = limit_ != 0 && after > limit_ ? after - limit_ : 0;
    const std::uint64_t spread = moves ? bytes_to_recycle(planned, size) : 0;
    block* grown = moves || beyond == 0 ? from.grow(planned, size) : nullptr;
    if (grown != nullptr) {
      if (back_with_free(*grown, from, planned, std::max(moves ? beyond : 0, spread))) return grown;
    }
    // Trimming may change the plan to a place that needs more memory, so it is repeated as long as
    // something is trimmed.
    block* spared = grown == nullptr ? planned.joined : nullptr;
    if (blocks_.trim(beyond != 0 ? beyond : planned.bytes(), spared) == 0) return nullptr;
  }
}

// The pool may grow to its highest size so far, and to slightly more than the most bytes in use at
// a time. Growth beyond that is recycled from free blocks, up to a budget: an eighth of the highest
// size, as much again (up to 32 MiB) each time that the bytes handed out have doubled, and more as
// long as recycling takes less than a 64th of the pool's age.
std::uint64_t pool_supply::bytes_to_recycle(const heap::growth& planned,
                                            std::uint64_t size) const noexcept {
  const std::uint64_t highest = blocks_.peak_reserved();
  const std::uint64_t after = blocks_.reserved() + planned.bytes();
  const auto live_peak =
      static_cast<std::uint64_t>(std::max<std::int64_t>(threads_.peak(purposes), 0));
  const std::uint64_t used = std::max(live_peak, blocks_.reserved() - blocks_.free_bytes() + size);
  const std::uint64_t allowed = std::max(highest, used + used / 1024);
  const std::uint64_t turns = taken_bytes_ / std::max<std::uint64_t>(highest, 1) + 1;
  const auto doublings = static_cast<std::uint64_t>(64 - __builtin_clzll(turns));
  const std::uint64_t most = highest / 8 + doublings * std::min(highest, std::uint64_t{32} << 20);
  if (after <= allowed) return 0;
  if (recycled_ >= most && recycling_ticks_ >= (core::ticks_now() - made_at_) / 64) return 0;
  return std::min(after - allowed, planned.bytes());
}

// Moves `bytes` of free blocks' memory behind a block that has just grown, or trims them. Returns
// false if they were fewer than the limit requires; the growth is then undone.
bool pool_supply::back_with_free(block& grown, heap& of, const heap::growth& planned,
                                 std::uint64_t bytes) noexcept {
  heap::move_target target = of.move_target_in(grown, planned);
  const std::uint64_t first = target.next;
  if (std::min(bytes, target.end - first) >= page_mover::least) target.open();
  const std::uint64_t begin = bytes > 0 ? core::ticks_now() : 0;
  std::uint64_t done = blocks_.move_out(bytes, target);
  target.by.close();
  if (target.next != first) grown.zero = false;
  if (done < bytes) done += blocks_.trim(bytes - done);
  recycled_ += done;
  if (bytes > 0) recycling_ticks_ += core::ticks_now() - begin;
  const bool within = allows(0);
  if (!within) of.shrink(grown, planned, first, target);
  if (within) blocks_.raise_peak();
  if (history_.is_recorded() && within) history_.add_mapped(of, planned.first, planned.bytes());
  if (history_.is_recorded() && !within) history_.add_mapped(of, first, target.next - first);
  return within;
}

// Returns true if a block freed on a stream has come back. The wait releases the lock, since the
// awaited work may need the pool.
bool pool_supply::wait_for_stream(std::unique_lock<brief_lock>& lock) {
  for (std::uint8_t lifetime = 0; lifetime < pool_backend::lifetimes; ++lifetime) {
    const std::shared_ptr<core::point> next = blocks_.pending(lifetime).next_to_pass();
    if (next == nullptr) continue;
    lock.unlock();
    const bool passed = next->wait(stream_timeout_ns);
    lock.lock();
    if (passed) return true;
  }
  return false;
}

// retries: consecutive calls of the pressure function after which no block had come back. The pool
// cannot see memory that the host frees elsewhere, so it believes a few such answers.
bool pool_supply::ask_host(std::uint64_t bytes, int& retries, std::unique_lock<brief_lock>& lock) {
  if (pressure_ == nullptr || retries == most_retries) return false;
  if (core::is_inside(handle_, core::part::carries))
    fail(VELO_ERR_STATE, "pool", "a request that finds memory, in the pool's pressure function",
         core::concat("one of ", bytes, " bytes that would call it again"));
  const core::inside_scope here(handle_, core::part::carries);
  const std::int64_t before = threads_.bytes_in_use();
  lock.unlock();
  const std::int32_t answer =
      core::call_host("desc.pressure", [&] { return pressure_(pressure_user_, bytes); });
  if (answer != 0 && answer != 1)
    fail(VELO_ERR_FOREIGN, "desc.pressure", "1 = try again, or 0", text("%d", answer));
  lock.lock();
  retries = threads_.bytes_in_use() < before ? 0 : retries + 1;
  return answer == 1;
}

void pool_supply::refuse(const pool_request& request) {
  ++refused_;
  const std::uint64_t hole = blocks_.largest_hole(), free = blocks_.free_bytes();
  if (history_.is_recorded()) history_.add_refused(request, free, hole);
  fail(
      VELO_ERR_MEMORY, "request.bytes", core::concat(request.bytes, " bytes"),
      core::concat("none: ", blocks_.reserved() - free, " in use of ", blocks_.reserved(),
                   " reserved, largest hole ", hole),
      limit_ != 0 ? core::concat("the pool's limit is ", limit_, " bytes") : text("out of memory"));
}

std::int64_t pool_supply::list_bytes() const noexcept {
  if (threads_.several()) return thread_cache::most_listed;
  return std::clamp(static_cast<std::int64_t>(blocks_.reserved() / 256), thread_cache::least_listed,
                    thread_cache::most_listed);
}

std::uint64_t pool_supply::make_room(std::uint64_t coming, std::uint64_t most) noexcept {
  if (limit_ != 0) most = std::min(most, limit_);
  const auto excess = [&] {
    const std::uint64_t after = blocks_.reserved() + coming;
    return after > most ? after - most : std::uint64_t{0};
  };
  if (excess() > blocks_.free_bytes()) blocks_.reclaim();
  if (excess() > 0) blocks_.trim(excess());
  return excess();
}

}  // namespace velo::memory
