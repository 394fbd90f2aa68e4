// Returns free blocks to the heaps, and memory of the heaps to the system.
#include "memory/pool/pool_backend.hpp"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>

namespace velo::memory {
namespace {

// A pool reserves addresses for four times the machine's memory, so that they never run out however
// scattered the blocks. A process with few addresses gives an eighth of them, since its threads and
// everything else need the rest.
std::uint64_t addresses_of_a_heap() noexcept {
  struct sysinfo machine {};
  sysinfo(&machine);
  const std::uint64_t memory = std::uint64_t{machine.totalram} * machine.mem_unit;
  const std::uint64_t ample =
      std::clamp<std::uint64_t>(memory * 4, std::uint64_t{1} << 30, std::uint64_t{1} << 44);
  rlimit most{};
  if (getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return ample;
  return std::min<std::uint64_t>(ample, most.rlim_cur / 8);
}

}  // namespace

pool_backend::pool_backend(velo_pool_kind kind, bool checked, thread_caches& threads,
                           pool_history& history, pool_log& log)
    : heaps_{{kind, VELO_LIFETIME_DEFAULT, addresses_of_a_heap()},
             {kind, VELO_LIFETIME_LONG, addresses_of_a_heap()}},
      threads_(threads),
      history_(history),
      log_(log),
      checked_(checked) {}

void pool_backend::retire(block& b) noexcept {
  if (!checked_) return give(b);
  checked::poison(heaps_[b.lifetime].memory_of(b), b);
  quarantine_.add(b);
  while (quarantine_.is_over()) release_quarantined(*quarantine_.take());
}

void pool_backend::release_quarantined(block& oldest) noexcept {
  core::text how("%s", "");
  if (checked::is_poison_damaged(heaps_[oldest.lifetime].memory_of(oldest), oldest, how)) {
    ++damaged_;
    log_.write(VELO_LOG_ERROR, how);
  }
  give(oldest);
}

bool pool_backend::empty_quarantine() noexcept {
  if (quarantine_.oldest() == nullptr) return false;
  while (block* oldest = quarantine_.take()) release_quarantined(*oldest);
  return true;
}

void pool_backend::empty_large(thread_cache& own) noexcept {
  const auto to_heap = [&](block& b) { give(b); };
  own.empty_own_large([&](block& first) {
    if (threads_.several()) return transfer_cache_.take_large_chain(first, to_heap);
    transfer_cache::each_of(&first, to_heap);
  });
}

void pool_backend::spill_lists(thread_cache& own) noexcept {
  const auto to_heap = [&](block& listed) { give(listed); };
  threads_.several() ? transfer_cache_.take_lists(own, to_heap) : own.empty_lists(to_heap);
}

void pool_backend::end_thread(thread_cache& ended) noexcept {
  const auto to_heap = [&](block& b) { give(b); };
  ended.empty_lists(to_heap);
  ended.empty_large([&](block& first) { transfer_cache::each_of(&first, to_heap); });
}

block* pool_backend::take_pending(std::uint8_t lifetime, velo_stream on, std::uint64_t size,
                                  std::uint64_t alignment) noexcept {
  block* b = pending_[lifetime].take(on, size, alignment, heaps_[lifetime].range().begin());
  if (b != nullptr && history_.is_recorded()) history_.add_completed(heaps_[lifetime], *b);
  return b;
}

// The lists of other threads are out of reach: only their threads may touch them.
bool pool_backend::reclaim() noexcept {
  const std::uint64_t before = free_bytes();
  const auto to_heap = [&](block& b) { give(b); };
  if (thread_cache* own = threads_.find()) own->empty_lists(to_heap);
  threads_.each([&](thread_cache& c) {
    c.empty_large([&](block& first) { transfer_cache::each_of(&first, to_heap); });
  });
  transfer_cache_.empty(to_heap);
  reclaim_passed();
  return free_bytes() != before;
}

// A stream that was destroyed has passed all its points.
void pool_backend::reclaim_passed() noexcept {
  for (stream_frees& s : pending_) {
    s.collect([&](block& b) {
      if (history_.is_recorded()) history_.add_completed(heaps_[b.lifetime], b);
      retire(b);
    });
  }
}

std::uint64_t pool_backend::trim(std::uint64_t bytes, block* but) noexcept {
  std::uint64_t done = 0;
  for (heap& h : heaps_) {
    if (done >= bytes) break;
    block* kept = but != nullptr && but->lifetime == h.lifetime() ? but : nullptr;
    done += h.trim(bytes - done, kept, [&](std::uint64_t start, std::uint64_t gone) {
      if (history_.is_recorded()) history_.add_unmapped(h, start, gone);
    });
  }
  trimmed_ += done;
  return done;
}

std::uint64_t pool_backend::move_out(std::uint64_t bytes, heap::move_target& to) noexcept {
  std::uint64_t done = 0;
  for (heap& h : heaps_) {
    if (done >= bytes) break;
    done += h.move_out(bytes - done, to, [&](std::uint64_t start, std::uint64_t gone) {
      if (history_.is_recorded()) history_.add_unmapped(h, start, gone);
    });
  }
  return done;
}

// No thread uses the pool any more, so the lists of all threads may be emptied.
void pool_backend::close() noexcept {
  reclaim();
  threads_.each([&](thread_cache& c) { drain(c); });
  empty_quarantine();
  trim(free_bytes());
  for (heap& h : heaps_) h.close();
}

std::uint64_t pool_backend::largest_hole() const noexcept {
  std::uint64_t most = 0;
  for (const heap& h : heaps_) {
    const block* hole = h.largest_free();
    if (hole != nullptr) most = std::max(most, hole->size);
  }
  return most;
}

pool_backend::usage pool_backend::in_use() const noexcept {
  usage all;
  each_block([&](const heap&, const block& b) {
    if (!b.is(block_state::in_use)) return;
    ++all.blocks;
    all.requested += b.asked();
  });
  return all;
}

}  // namespace velo::memory
