// What a host may ask of a pool: counters, a trim, a check of every block, where shared memory
// lies.
#include <algorithm>

#include "core/handle/failure.hpp"
#include "memory/pool/pool.hpp"

namespace velo::memory {

using core::fail;
using core::text;

std::uint64_t pool::trim(std::uint64_t keep) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  drains_.fetch_add(1, std::memory_order_relaxed);
  take_in();
  while (block* oldest = quarantine_.take()) release_quarantined(*oldest);
  const std::uint64_t ready = free_bytes();
  return ready > keep ? trim_free(ready - keep, nullptr) : 0;
}

void pool::set_limit(std::uint64_t bytes) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  limit_ = bytes;
}

bool pool::lend(std::uint64_t bytes) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  if (limit_ != 0 && reserved() + bytes > limit_) return false;
  lent_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved());
  return true;
}

void pool::take_back(std::uint64_t bytes) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  lent_ -= bytes;
}

std::uint64_t pool::make_room(std::uint64_t coming, std::uint64_t most) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  if (limit_ != 0) most = std::min(most, limit_);
  const auto excess = [&] {
    return reserved() + coming > most ? reserved() + coming - most : std::uint64_t{0};
  };
  if (excess() > free_bytes()) take_in();
  if (excess() > 0) trim_free(excess(), nullptr);
  return excess();
}

bool pool::needs_room(std::uint64_t bytes) const noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  const heap& from = heaps_[VELO_LIFETIME_DEFAULT];
  return bytes <= from.range().size() && !from.has_free(bytes);
}

std::uint64_t pool::bytes_in_use() const noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  const std::int64_t live = sum([](const tally& t) { return t.bytes(purposes); });
  return static_cast<std::uint64_t>(std::max<std::int64_t>(live, 0)) + streams_[0].bytes() +
         streams_[1].bytes();
}

void pool::check() const {
  const std::lock_guard<brief_lock> lock(lock_);
  if (!checked_) return;
  text how("%s", "");
  for (const heap& h : heaps_) {
    for (const block* b = h.first(); b != nullptr; b = b->after) {
      const bool damaged =
          (b->is(block_state::in_use) && checked::is_damaged(h.memory_of(*b), *b, how)) ||
          (b->is(block_state::quarantined) && checked::is_poison_damaged(h.memory_of(*b), *b, how));
      if (damaged) fail(VELO_ERR_ARGUMENT, "pool", "blocks that only their owners wrote", how);
    }
  }
  if (damaged_ > 0)
    fail(VELO_ERR_ARGUMENT, "pool", "blocks that only their owners wrote",
         text("%llu blocks written after their free", static_cast<unsigned long long>(damaged_)));
}

const plain_functions& pool::functions() {
  const std::lock_guard<brief_lock> lock(lock_);
  if (functions_ == nullptr) functions_ = std::make_unique<plain_functions>(*this);
  return *functions_;
}

void pool::locate(const void* memory, std::int32_t& file, std::uint64_t& offset) const {
  const std::lock_guard<brief_lock> lock(lock_);
  const heap& from = heap_of(memory);
  const block* b = from.find(memory);
  if (b == nullptr || !b->is(block_state::in_use)) refuse(memory, b);
  if (from.range().file() < 0)
    fail(VELO_ERR_UNSUPPORTED, "pool", "a pool of shared memory", "one of another kind");
  file = from.range().file();
  offset = b->first();
}

pool::usage pool::in_use() const noexcept {
  usage all;
  for (const heap& h : heaps_) {
    for (const block* b = h.first(); b != nullptr; b = b->after) {
      if (!b->is(block_state::in_use)) continue;
      ++all.blocks;
      all.requested += b->asked();
    }
  }
  return all;
}

std::uint64_t pool::largest_hole() const noexcept {
  std::uint64_t most = 0;
  for (const heap& h : heaps_) {
    const block* hole = h.largest_free();
    if (hole != nullptr) most = std::max(most, hole->size);
  }
  return most;
}

void pool::fill(velo_pool_stats& stats) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  take_in_passed();
  fill_with_lock(stats);
}

// Walks over all blocks for what no counter holds: free blocks among blocks in use.
void pool::fill_with_lock(velo_pool_stats& stats) const noexcept {
  // Other threads go on counting: a block may be seen on its way from one tally to another.
  const auto total = [&](auto&& of) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(sum(of), 0));
  };
  const auto less = [](std::uint64_t all, std::uint64_t part) {
    return all > part ? all - part : 0;
  };
  stats.bytes_live = total([](const tally& t) { return t.bytes(purposes); });
  const usage used = in_use();
  stats.bytes_rounding = less(stats.bytes_live, used.requested);
  stats.bytes_peak = static_cast<std::uint64_t>(levels_[purposes].peak.load());
  stats.bytes_reserved = reserved();
  stats.bytes_reserved_peak = peak_reserved_;
  stats.bytes_pending = streams_[0].bytes() + streams_[1].bytes();
  stats.bytes_cached = less(stats.bytes_reserved, stats.bytes_live + stats.bytes_pending);
  stats.bytes_let_go = let_go_;
  stats.bytes_largest_hole = largest_hole();
  for (const heap& h : heaps_) {
    stats.bytes_unlocked += h.range().unlocked();
    for (const block* b = h.first(); b != nullptr; b = b->after) {
      const auto holds = [](const block* n) {
        return n != nullptr && !n->is(block_state::uncommitted);
      };
      if (b->is(block_state::free) && (holds(b->before) || holds(b->after)))
        stats.bytes_split += b->size;
    }
  }
  stats.allocations = total([](const tally& t) { return t.taken(); });
  stats.frees = less(stats.allocations, used.blocks);
  stats.refused = refused_;
  for (int p = 0; p < purposes; ++p) {
    stats.purpose_live[p] = total([p](const tally& t) { return t.bytes(p); });
    stats.purpose_peak[p] = static_cast<std::uint64_t>(levels_[p].peak.load());
  }
}

// No counter is kept for each stream: a walk finds the blocks in use by their streams.
void pool::fill(velo_stream of, velo_pool_stream_stats& stats) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  take_in_passed();
  for (const heap& h : heaps_) {
    for (const block* b = h.first(); b != nullptr; b = b->after) {
      if (!b->is(block_state::in_use) || b->on.load(std::memory_order_relaxed) != of) continue;
      stats.bytes_live += b->size;
      ++stats.blocks_live;
    }
  }
  if (of != nullptr) stats.bytes_pending = streams_[0].bytes(of) + streams_[1].bytes(of);
}

}  // namespace velo::memory
