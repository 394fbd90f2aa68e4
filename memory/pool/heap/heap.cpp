// Splits, merges, backs and trims blocks. The index keeps the sums, so no counter can disagree with
// the blocks.
#include "memory/pool/heap/heap.hpp"

#include <algorithm>
#include <cassert>
#include <new>

#include "core/failure.hpp"
#include "core/round_up.hpp"

namespace velo::memory {

using core::round_up;

namespace {

// There are descriptions for blocks of 256 bytes on average over all addresses, four times as many
// as the machine's memory can hold.
constexpr std::uint64_t bytes_per_block = 256;
constexpr std::uint64_t most_numbered = (std::uint64_t{1} << 32) - 1;
// Giving up a hole splits a mapping in two, and a process may have 65530 mappings.
constexpr std::uint64_t least_given_up = std::uint64_t{64} << 20;

std::uint64_t align(std::uint64_t address, std::uint64_t alignment) noexcept {
  return (address + alignment - 1) & ~(alignment - 1);
}

}  // namespace

heap::heap(velo_pool_kind kind, std::uint8_t lifetime, std::uint64_t wanted)
    : range_(kind, wanted), lifetime_(lifetime) {
  most_blocks_ = std::min(range_.size() / bytes_per_block, most_numbered);
  if (!blocks_memory_.reserve(most_blocks_ * sizeof(block)) ||
      !of_units_memory_.reserve(range_.size() / unit * sizeof(std::uint32_t)) ||
      !of_pages_memory_.reserve(range_.size() / fine * sizeof(std::uint32_t)))
    core::fail(VELO_ERR_MEMORY, "", "addresses for the descriptions of blocks", "none");
  blocks_ = static_cast<block*>(blocks_memory_.data());
  of_units_ = static_cast<std::atomic<std::uint32_t>*>(of_units_memory_.data());
  of_pages_ = static_cast<std::atomic<std::uint32_t>*>(of_pages_memory_.data());
  blocks_[0].start = range_.size();
  block& all = new_block();
  all.start = 0;
  all.size = range_.size();
  all.become(block_state::uncommitted);
  first_ = last_ = &all;
  uncommitted_.insert(all);
}

// Others may already use the addresses that were given up, so only those between them are unmapped.
heap::~heap() {
  std::uint64_t from = 0;
  for (const block* b = first_; b != nullptr; b = b->after) {
    if (!b->is(block_state::given_up)) continue;
    if (b->start > from) range_.give_up(from, b->start - from);
    from = b->end();
  }
  if (from == 0) return;
  range_.cut(from);
  range_.leave();
}

void heap::close() noexcept {
  if (last_->is(block_state::uncommitted) && range_.cut(last_->start)) {
    uncommitted_.remove(*last_);
    last_ = last_->before;
    (last_ != nullptr ? last_->after : first_) = nullptr;
    units_ = range_.size() / unit;
    of_units_memory_.cut(range_.size() / unit * sizeof(std::uint32_t));
    of_pages_memory_.cut(range_.size() / fine * sizeof(std::uint32_t));
  }
  for (block* b = first_; b != nullptr; b = b->after) {
    if (!b->is(block_state::uncommitted) || b->size < least_given_up) continue;
    if (!range_.give_up(b->start, b->size)) continue;
    uncommitted_.remove(*b);
    b->become(block_state::given_up);
  }
  blocks_memory_.cut(blocks_made_ * sizeof(block));
  most_blocks_ = blocks_made_;
}

inline block& heap::new_block() noexcept {
  block* made = spare_;
  if (made != nullptr) {
    spare_ = made->after;
    --spares_;
  } else {
    made = new (&blocks_[blocks_made_++]) block{};
  }
  made->lifetime = lifetime_;
  made->front = 0;
  return *made;
}

// Recycles a description that is no longer needed, if `is_one`.
inline void heap::put_aside(block& gone, choice is_one) noexcept {
  gone.become(block_state::unused);
  gone.begin_at(range_.size());
  gone.after = spare_;
  spare_ = is_one(&gone, spare_);
  spares_ += is_one.one_or_none();
}

// Cuts a block in use off the front of a free block.
inline block& heap::cut_front(block& from, std::uint64_t size) noexcept {
  block& front = new_block();
  front.begin_at(from.start);
  front.size = size;
  front.become(block_state::in_use);
  front.before = from.before;
  front.after = &from;
  (from.before != nullptr ? from.before->after : first_) = &front;
  from.before = &front;
  free_.remove(from);
  from.begin_at(from.start + size);
  from.size -= size;
  free_.insert(from);
  return front;
}

block* heap::take(std::uint64_t size, std::uint64_t alignment) noexcept {
  const std::uint64_t slack = alignment > unit ? alignment - unit : 0;
  block* found = free_.find(size + slack);
  if (found == nullptr || !can_split()) return nullptr;
  std::uint64_t start = found->start;
  __builtin_prefetch(&entry(start, size), 1);  // for show()
  if (slack != 0) {
    const auto base = reinterpret_cast<std::uintptr_t>(range_.begin());
    start = align(base + start, alignment) - base;
  }
  block* taken = found;
  if (start == found->start && size < found->size) {
    taken = &cut_front(*found, size);
  } else {
    free_.remove(*found);
    taken = carve(*found, start, size);
  }
  taken->zero = false;
  return taken;
}

// Finds the growth with the least new memory: an uncommitted block, whose free neighbors count as
// part of it. Among equals the hole that fits best comes first and the end of the heap last, so
// that a heap that repeatedly grows and is trimmed reuses its addresses.
heap::growth heap::plan_growth(std::uint64_t size, std::uint64_t alignment) const noexcept {
  if (!can_split(with_the_way_back)) return {};
  growth best;
  const auto offer = [&](block& uncommitted) {
    const growth there = growth_into(uncommitted, size, alignment);
    if (there.into != nullptr && (best.into == nullptr || there.bytes() < best.bytes()))
      best = there;
  };
  if (block* fits = uncommitted_.find(size + (alignment > unit ? alignment : 0))) offer(*fits);
  uncommitted_.each_of_the_smallest(most_looks, offer);
  if (last_->is(block_state::uncommitted)) offer(*last_);
  return best;
}

// Grows at the front of an uncommitted block with the free block before it, or at its end with the
// free block behind it, whichever needs less memory. None: there is no room.
heap::growth heap::growth_into(block& uncommitted, std::uint64_t size,
                               std::uint64_t alignment) const noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(range_.begin());
  const auto is_free = [](const block* b) { return b != nullptr && b->is(block_state::free); };
  block* before = is_free(uncommitted.before) ? uncommitted.before : nullptr;
  const std::uint64_t end = (is_free(uncommitted.after) ? *uncommitted.after : uncommitted).end();
  const auto at = [&](std::uint64_t start) {
    const std::uint64_t granule = range_.granule();
    growth g;
    g.into = &uncommitted;
    g.joined = start < uncommitted.start ? before : nullptr;
    g.start = start;
    g.first = std::max(uncommitted.start, start / granule * granule);
    g.last = std::min(round_up(start + size, granule), uncommitted.end());
    return g;
  };
  std::uint64_t front = align(base + (before != nullptr ? *before : uncommitted).start, alignment);
  if (front - base + size <= uncommitted.start) front = align(base + uncommitted.start, alignment);
  front -= base;
  if (front > end || size > end - front) return {};
  const growth there = at(front);
  if (end == uncommitted.end()) return there;
  const std::uint64_t back = ((base + end - size) & ~(alignment - 1)) - base;
  if (back < front || back >= uncommitted.end() || back + size <= uncommitted.start) return there;
  const growth behind = at(back);
  return behind.bytes() < there.bytes() ? behind : there;
}

block* heap::grow(const growth& planned, std::uint64_t size) noexcept {
  if (!range_.commit(planned.first, planned.bytes())) return nullptr;
  block* made = planned.into;
  uncommitted_.remove(*made);
  if (planned.first > made->start) {
    block& behind = split(*made, planned.first);
    uncommitted_.insert(*made);
    made = &behind;
  }
  if (planned.last < made->end()) uncommitted_.insert(split(*made, planned.last));
  made->become(block_state::free);
  reserved_ += planned.bytes();
  block* taken = carve(merged(*made), planned.start, size);
  taken->zero = taken->start >= planned.first && taken->end() <= planned.last;
  return taken;
}

// Makes [start, start + size) of a block that is in no index a block in use; the rest is free
// again.
block* heap::carve(block& from, std::uint64_t start, std::uint64_t size) noexcept {
  block* taken = &from;
  if (start > from.start) {
    taken = &split(from, start);
    free_.insert(from);
  }
  if (size < taken->size) free_.insert(split(*taken, start + size));
  taken->become(block_state::in_use);
  return taken;
}

// Whether a neighbor is free is unpredictable, so there is no branch: for a neighbor that is not
// free the same steps are done to a dummy block, free_.none().
block& heap::give(block& freed) noexcept {
  block& none = free_.none();
  block* before = freed.before != nullptr ? freed.before : &none;
  block* after = freed.after != nullptr ? freed.after : &none;
  const choice joins_before(before->is(block_state::free));
  const choice joins_after(after->is(block_state::free));
  block& front = *joins_before(before, &none);
  block& rest = *joins_after(after, &none);
  block& whole = *joins_before(before, &freed);
  free_.remove(front);
  free_.remove(rest);
  whole.size = front.size + freed.size + rest.size;
  whole.become(block_state::free);
  whole.after = joins_after(rest.after, freed.after);
  (whole.after != nullptr ? whole.after->before : last_) = &whole;
  put_aside(*joins_before(&freed, &none), joins_before);
  put_aside(rest, joins_after);
  free_.insert(whole);
  return whole;
}

// [start, start + bytes) of a free block, with what its huge pages have of uncommitted neighbors.
// Linux may have made a huge page over them (khugepaged), which backs the holes, too.
heap::stretch heap::with_holes(const block& b, std::uint64_t start,
                               std::uint64_t bytes) const noexcept {
  constexpr std::uint64_t huge = address_range::huge;
  const auto is_hole = [](const block* near) {
    return near != nullptr && near->is(block_state::uncommitted);
  };
  std::uint64_t first = start, last = start + bytes;
  if (first == b.start && is_hole(b.before)) first = std::max(b.before->start, first / huge * huge);
  if (last == b.end() && is_hole(b.after)) last = std::min(b.after->end(), round_up(last, huge));
  return {first, last - first};
}

// Whole granules of a free block, no more than cover `most` bytes: at its front where they join
// uncommitted ones there, else at its end. None when it holds no granule or the system refuses.
heap::stretch heap::uncommit(block& b, std::uint64_t most) noexcept {
  const std::uint64_t granule = range_.granule();
  const std::uint64_t first = round_up(b.start, granule), last = b.end() / granule * granule;
  if (last <= first) return {};
  const std::uint64_t length = std::min(last - first, round_up(most, granule));
  const bool at_front = b.before != nullptr && b.before->is(block_state::uncommitted);
  const std::uint64_t from = at_front ? first : last - length;
  const stretch gone = with_holes(b, from, length);
  if (!range_.decommit(gone.start, gone.bytes)) return {};
  drop(b, from, length);
  return {from, length};
}

// A part of a free block becomes uncommitted.
void heap::drop(block& b, std::uint64_t start, std::uint64_t size) noexcept {
  free_.remove(b);
  block* gone = &b;
  if (start > b.start) {
    gone = &split(b, start);
    free_.insert(b);
  }
  if (start + size < gone->end()) free_.insert(split(*gone, start + size));
  gone->become(block_state::uncommitted);
  block& whole = merged(*gone);
  uncommitted_.insert(whole);
  forget(whole, start, size);
}

// [start, start + size) has just become a part of an uncommitted block. Table pages that cover no
// address outside this block are released: an entry of zero is block 0, which stands for none. The
// first and the last of these pages may begin before and end behind the new part.
void heap::forget(const block& uncommitted, std::uint64_t start, std::uint64_t size) noexcept {
  const std::uint64_t end = start + size;
  const auto forget_in = [&](sparse_array& table, std::uint64_t bytes_per_entry) {
    constexpr std::uint64_t entry = sizeof(std::uint32_t);
    const std::uint64_t reach = sparse_array::page() / entry * bytes_per_entry;
    const std::uint64_t first = start - std::min(start - uncommitted.start, reach);
    const std::uint64_t last = end + std::min(uncommitted.end() - end, reach);
    table.let_go(first / bytes_per_entry * entry, last / bytes_per_entry * entry);
  };
  forget_in(of_units_memory_, unit);
  forget_in(of_pages_memory_, fine);
}

heap::move_target heap::move_target_in(const block& grown, const growth& planned) noexcept {
  constexpr std::uint64_t huge = address_range::huge;
  const std::uint64_t first = round_up(std::max(grown.start, planned.first), huge);
  const std::uint64_t last = std::min(grown.end(), planned.last) / huge * huge;
  return {range_, first, std::max(first, last), {}};
}

// Whole huge pages of a large free block. None: it holds none, or the system refuses.
heap::stretch heap::move_one(std::uint64_t most, move_target& to) noexcept {
  constexpr std::uint64_t huge = address_range::huge;
  const auto holds_one = [](const block& b) { return round_up(b.start, huge) + huge <= b.end(); };
  block* b = free_.large();
  while (b != nullptr && !holds_one(*b)) b = b->right;
  if (b == nullptr) return {};
  const std::uint64_t first = round_up(b->start, huge), last = b->end() / huge * huge;
  const std::uint64_t length = std::min({last - first, round_up(most, huge), to.end - to.next});
  std::uint64_t moved = range_.move(first, length, to.range, to.next, to.by);
  // Memory that was moved here in pieces can be moved again only in these pieces.
  if (moved == 0 && length > huge) moved = range_.move(first, huge, to.range, to.next, to.by);
  if (moved == 0) return {};
  drop(*b, first, moved);
  to.next += moved;
  return {first, moved};
}

// Memory outside of the target was never touched, so that no system call gives it back. Where
// nothing was moved, the target may begin after the growth, and only the growth's end counts.
void heap::shrink(block& grown, const growth& planned, std::uint64_t first,
                  const move_target& filled) noexcept {
  const bool moved = filled.next > first;
  const std::uint64_t kept_from = moved ? first : planned.last;
  const std::uint64_t kept_to = moved ? filled.next : planned.last;
  assert(can_split());
  block& whole = give(grown);
  if (planned.last > kept_to) {
    drop(whole, kept_to, planned.last - kept_to);
    reserved_ -= planned.last - kept_to;
  }
  if (kept_from > planned.first) {
    drop(whole, planned.first, kept_from - planned.first);
    reserved_ -= kept_from - planned.first;
  }
}

const block* heap::enclosing(const void* memory) const noexcept {
  const auto at = static_cast<std::uint64_t>(static_cast<const char*>(memory) - range_.begin());
  for (const block* b = first_; b != nullptr && b->start <= at; b = b->after)
    if (at < b->end()) return b->is(block_state::in_use) ? b : nullptr;
  return nullptr;
}

free_index& heap::index_of(const block& b) noexcept {
  return b.is(block_state::free) ? free_ : uncommitted_;
}

block& heap::merged(block& b) noexcept {
  const block_state state = b.state.load(std::memory_order_relaxed);
  if (b.after != nullptr && b.after->is(state)) {
    index_of(b).remove(*b.after);
    absorb(b);
  }
  block* before = b.before;
  if (before == nullptr || !before->is(state)) return b;
  index_of(b).remove(*before);
  absorb(*before);
  return *before;
}

block& heap::split(block& b, std::uint64_t at) noexcept {
  block& behind = new_block();
  behind.begin_at(at);
  behind.size = b.end() - at;
  behind.become(b.state.load(std::memory_order_relaxed));
  behind.before = &b;
  behind.after = b.after;
  (b.after != nullptr ? b.after->before : last_) = &behind;
  b.after = &behind;
  b.size = at - b.start;
  return behind;
}

void heap::absorb(block& b) noexcept {
  block& gone = *b.after;
  b.size += gone.size;
  b.after = gone.after;
  (gone.after != nullptr ? gone.after->before : last_) = &b;
  put_aside(gone, choice(true));
}

}  // namespace velo::memory
