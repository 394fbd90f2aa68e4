// The counters of a pool, the check of its blocks and its snapshot: walks over all blocks.
#include <algorithm>

#include "core/failure.hpp"
#include "memory/pool/pool.hpp"

namespace velo::memory {

using core::fail;
using core::text;

std::uint64_t pool::bytes_in_use() const noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  const std::int64_t live = threads_.bytes_in_use();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(live, 0)) + blocks_.pending_bytes();
}

void pool::check() const {
  const std::lock_guard<brief_lock> lock(lock_);
  if (!blocks_.is_checked()) return;
  text how("%s", "");
  blocks_.each_block([&](const heap& h, const block& b) {
    const bool damaged =
        (b.is(block_state::in_use) && checked::is_damaged(h.memory_of(b), b, how)) ||
        (b.is(block_state::quarantined) && checked::is_poison_damaged(h.memory_of(b), b, how));
    if (damaged) fail(VELO_ERR_ARGUMENT, "pool", "blocks that only their owners wrote", how);
  });
  if (blocks_.damaged() > 0)
    fail(VELO_ERR_ARGUMENT, "pool", "blocks that only their owners wrote",
         core::concat(blocks_.damaged(), " blocks written after their free"));
}

void pool::fill(velo_pool_stats& stats) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  blocks_.reclaim_passed();
  fill_locked(stats);
}

// Walks over all blocks for what no counter holds: free blocks among blocks in use.
void pool::fill_locked(velo_pool_stats& stats) const noexcept {
  // Other threads go on counting: a block may be seen on its way from one tally to another.
  const auto total = [&](auto&& of) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(threads_.sum(of), 0));
  };
  const auto less = [](std::uint64_t all, std::uint64_t subtracted) {
    return all > subtracted ? all - subtracted : 0;
  };
  stats.bytes_live = total([](const tally& t) { return t.bytes(purposes); });
  const pool_backend::usage used = blocks_.in_use();
  stats.bytes_rounding = less(stats.bytes_live, used.requested);
  stats.bytes_peak = static_cast<std::uint64_t>(threads_.peak(purposes));
  stats.bytes_reserved = blocks_.reserved();
  stats.bytes_reserved_peak = blocks_.peak_reserved();
  stats.bytes_pending = blocks_.pending_bytes();
  stats.bytes_cached = less(stats.bytes_reserved, stats.bytes_live + stats.bytes_pending);
  stats.bytes_let_go = blocks_.trimmed_bytes();
  stats.bytes_largest_hole = blocks_.largest_hole();
  for (int lifetime = 0; lifetime < pool_backend::lifetimes; ++lifetime)
    stats.bytes_unlocked += range(lifetime).unlocked();
  blocks_.each_block([&](const heap&, const block& b) {
    const auto is_backed = [](const block* n) {
      return n != nullptr && !n->is(block_state::uncommitted);
    };
    if (b.is(block_state::free) && (is_backed(b.before) || is_backed(b.after)))
      stats.bytes_split += b.size;
  });
  stats.allocations = total([](const tally& t) { return t.taken(); });
  stats.frees = less(stats.allocations, used.blocks);
  stats.refused = supply_.refused();
  for (int p = 0; p < purposes; ++p) {
    stats.purpose_live[p] = total([p](const tally& t) { return t.bytes(p); });
    stats.purpose_peak[p] = static_cast<std::uint64_t>(threads_.peak(p));
  }
}

// No counter is kept for each stream: a walk finds the blocks in use by their streams.
void pool::fill(velo_stream of, velo_pool_stream_stats& stats) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  blocks_.reclaim_passed();
  blocks_.each_block([&](const heap&, const block& b) {
    if (!b.is(block_state::in_use) || b.on.load(std::memory_order_relaxed) != of) return;
    stats.bytes_live += b.size;
    ++stats.blocks_live;
  });
  if (of != nullptr) stats.bytes_pending = blocks_.pending_bytes(of);
}

snapshot pool::take_snapshot() {
  snapshot seen;
  const std::lock_guard<brief_lock> lock(lock_);
  blocks_.reclaim_passed();
  seen.taken = core::instant::now(CLOCK_REALTIME);
  seen.events = history_.copy();
  fill_locked(seen.stats);
  seen.limit = supply_.limit();
  seen.checked = blocks_.is_checked();
  blocks_.each_block([&](const heap& h, const block& b) {
    const block_state state = b.state.load(std::memory_order_relaxed);
    if (state == block_state::uncommitted) return;
    const auto address = reinterpret_cast<std::uintptr_t>(h.memory_of(b));
    if (b.before == nullptr || b.before->is(block_state::uncommitted))
      seen.segments.push_back({address, 0, seen.blocks.size(), 0, b.lifetime});
    seen.blocks.push_back({address, b.size, b.asked(), state, b.purpose});
    seen.segments.back().size += b.size;
    ++seen.segments.back().count;
  });
  return seen;
}

}  // namespace velo::memory
