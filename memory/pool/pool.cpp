// Taking and giving: the fast path first, then what happens when it finds nothing.
#include "memory/pool/pool.hpp"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/handle/failure.hpp"
#include "core/handle/host_call.hpp"
#include "core/handle/inside.hpp"
#include "core/host/process.hpp"
#include "core/round_up.hpp"

namespace velo::memory {

using core::fail;
using core::round_up;
using core::text;

namespace {

constexpr std::int64_t patience_ns = 1000000000;  // for a stream, before a request fails
constexpr int most_in_vain = 16;                  // answers of the pressure callback (pool.h)

// Four times the machine's memory: addresses are never short, however scattered the blocks. Where
// the process may have few, an eighth of those: most stay for its threads and everything else.
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

unsigned long long number(std::uint64_t n) noexcept {
  return n;
}

}  // namespace

pool::pool(const velo_pool_desc& desc)
    : heaps_{{desc.kind, VELO_LIFETIME_DEFAULT, addresses_of_a_heap()},
             {desc.kind, VELO_LIFETIME_LONG, addresses_of_a_heap()}},
      kind_(desc.kind),
      checked_(desc.checked != 0),
      epoch_(core::start_process_epoch()),
      pressure_(desc.pressure),
      pressure_user_(desc.pressure_user),
      log_(desc.log, desc.log_user),
      limit_(desc.limit) {
  log_.set_level(desc.log != nullptr ? VELO_LOG_WARN : VELO_LOG_OFF);
  // Where the process has no key left, every call goes to the heap.
  has_key_ = !checked_ && pthread_key_create(&key_, &thread_ends) == 0;
}

pool::~pool() {
  if (has_key_) pthread_key_delete(key_);
  while (caches_ != nullptr) {
    thread_cache* last = std::exchange(caches_, caches_->next);
    if (!table_.remove(*last)) delete last;
  }
}

// nullptr: there is none and none can be made.
__attribute__((noinline)) thread_cache* pool::find_cache() noexcept {
  if (!has_key_) return nullptr;
  if (void* known = pthread_getspecific(key_)) return static_cast<thread_cache*>(known);
  char* base = heaps_[VELO_LIFETIME_DEFAULT].range().begin();
  const std::uint32_t drains = drains_.load(std::memory_order_relaxed);
  thread_cache* made = table_.add(*this, base, drains, handle_);
  if (made == nullptr) made = new (std::nothrow) thread_cache(*this, base, drains);
  if (made == nullptr) return nullptr;
  if (pthread_setspecific(key_, made) != 0) {
    if (!table_.remove(*made)) delete made;
    return nullptr;
  }
  const std::lock_guard<brief_lock> lock(lock_);
  made->next = caches_;
  if (caches_ != nullptr) caches_->before = made;
  caches_ = made;
  several_.store(made->next != nullptr, std::memory_order_relaxed);
  return made;
}

void pool::thread_ends(void* cache) noexcept {
  auto* ended = static_cast<thread_cache*>(cache);
  if (ended->home == nullptr) return;  // wiped: in a child of a fork
  pool& home = *ended->home;
  if (core::process_epoch() != home.epoch_) return;  // the lock may be held for ever
  bool stood = false;
  {
    const std::lock_guard<brief_lock> lock(home.lock_);
    ended->empty_lists([&](block& b) { home.give(b); });
    ended->empty_pockets([&](block& first) { home.give_chain(first); });
    home.history_.leave(ended->page);
    ended->counted.settle_wholly(home.levels_);
    home.shared_.inherit(ended->counted);
    (ended->before != nullptr ? ended->before->next : home.caches_) = ended->next;
    if (ended->next != nullptr) ended->next->before = ended->before;
    const bool several = home.caches_ != nullptr && home.caches_->next != nullptr;
    home.several_.store(several, std::memory_order_relaxed);
    stood = home.table_.remove(*ended);
  }
  if (!stood) delete ended;
}

void pool::serve(const void* handle) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  handle_ = handle;
  log_.serve(handle);
  set_apart(apart_.load(std::memory_order_relaxed));
}

// What allocate() comes to for most requests that find nothing at hand, without what sets others
// apart.
bool pool::take_from_heap(thread_cache& mine, std::uint64_t bytes, std::uint8_t purpose,
                          void** memory) noexcept {
  heap& from = heaps_[VELO_LIFETIME_DEFAULT];
  if (bytes - 1 >= from.range().size()) return false;
  const std::uint64_t size = block_size(bytes);
  const std::lock_guard<brief_lock> lock(lock_);
  if (apart_.load(std::memory_order_relaxed) != 0) return false;
  follow_drain(mine);
  empty_own_pockets(mine);
  if (exchange_.may_have(size)) return false;
  block* taken = from.take(size, unit);
  if (taken == nullptr) return false;
  taken_bytes_ += size;
  mine.counted.settle(purpose, levels_);
  mine.pass_lists_by(static_cast<std::int64_t>(size));
  follow(mine, purpose, mine.hand_out(*taken, bytes, size, purpose, nullptr));
  *memory = from.show(*taken, bytes);
  return true;
}

void* pool::allocate(const wanted& what) {
  thread_cache* mine = cache_here();
  void* memory = nullptr;
  if (mine == nullptr || what.lifetime != VELO_LIFETIME_DEFAULT) return allocate_slowly(mine, what);
  const auto take = [&] {
    return follow(
        *mine, what.purpose,
        is_large(what.bytes)
            ? mine->take_from_pocket(what.bytes, what.alignment, what.purpose, &memory, what.on)
            : mine->take(what.bytes, what.alignment, what.purpose, &memory, what.on));
  };
  const bool taken = take() || (!is_large(what.bytes) && take_over(*mine, what.bytes) && take());
  if (!taken) return allocate_slowly(mine, what);
  if (is_recorded()) note_taken(static_cast<char*>(memory), block_size(what.bytes), what);
  if (what.zero) std::memset(memory, 0, what.bytes);
  return memory;
}

// Of the blocks that other threads have too many of. False: there are none for so many bytes.
bool pool::take_over(thread_cache& mine, std::uint64_t bytes) noexcept {
  if (bytes == 0 || !exchange_.has(bytes)) return false;
  const std::lock_guard<brief_lock> lock(lock_);
  follow_drain(mine);
  mine.limit_lists(most_in_lists());
  return exchange_.fill_list(mine, bytes);
}

void* pool::allocate_slowly(thread_cache* mine, const wanted& what) {
  if (what.bytes > heaps_[0].range().size())
    fail(VELO_ERR_MEMORY, "request.bytes",
         text("at most %llu bytes", number(heaps_[0].range().size())),
         text("%llu", number(what.bytes)));
  std::unique_lock<brief_lock> lock(lock_);
  if (mine != nullptr) {
    follow_drain(*mine);
    empty_own_pockets(*mine);
  }
  const std::uint64_t front = checked_ ? checked::front_of(what.alignment) : 0;
  block* taken = mine != nullptr ? take_from_chain(*mine, what) : nullptr;
  if (taken == nullptr)
    taken = obtain_or_wait(
        what, checked_ ? checked::size_of(front, what.bytes) : block_size(what.bytes), lock);
  taken->front = static_cast<std::uint16_t>(front / unit);
  tally& counted = mine != nullptr ? mine->counted : shared_;
  counted.settle(what.purpose, levels_);
  taken->hand_out(what.bytes, what.purpose, what.on);
  if (is_recorded()) note_taken(heaps_[taken->lifetime].memory_of(*taken), taken->size, what);
  if (mine != nullptr) {
    mine->limit_lists(most_in_lists());
    mine->pass_lists_by(static_cast<std::int64_t>(taken->size));
  }
  if (counted.count_taken(taken->size, what.purpose))
    counted.publish(levels_, what.purpose, several());
  char* memory = heaps_[taken->lifetime].show(*taken, what.bytes);
  if (what.zero && !taken->zero) std::memset(memory, 0, what.bytes);
  taken->zero = false;
  if (checked_) checked::arm(heaps_[taken->lifetime].memory_of(*taken), *taken, what.zero);
  return memory;
}

// Blocks that lists hold merge with no neighbor and are taken again before a hole that fits better:
// of the only thread they hold no more than a small share of the pool.
std::int64_t pool::most_in_lists() const noexcept {
  if (several()) return thread_cache::most_listed;
  return std::clamp(static_cast<std::int64_t>(reserved() / 256), thread_cache::least_listed,
                    thread_cache::most_listed);
}

// Of the larger blocks that other threads have too many of; the rest of the chain is this thread's.
block* pool::take_from_chain(thread_cache& mine, const wanted& what) noexcept {
  if (!is_large(what.bytes) || what.lifetime != VELO_LIFETIME_DEFAULT) return nullptr;
  block* first = exchange_.take_larger(block_size(what.bytes),
                                       heaps_[what.lifetime].range().begin(), what.alignment);
  if (first != nullptr && first->left != nullptr) mine.fill_pocket(*first->left);
  return first;
}

// The order of what a request may have: what its stream freed, the heap's free blocks, what caches
// and passed streams hold, memory of the system. nullptr: the system or the limit said no.
block* pool::obtain(const wanted& what, std::uint64_t size) noexcept {
  heap& from = heaps_[what.lifetime];
  taken_bytes_ += size;
  // Zeros are written at once, which its own work that still runs would not bear.
  if (what.on != nullptr && !what.zero && !checked_) {
    block* b = streams_[what.lifetime].take(what.on, size, what.alignment);
    if (b != nullptr && is_recorded()) note_passed(*b);
    if (b != nullptr) return b;
  }
  block* b = from.take(size, what.alignment);
  if (b == nullptr && take_in()) b = from.take(size, what.alignment);
  return b != nullptr ? b : obtain_new(from, size, what.alignment);
}

// Memory of free blocks that are too small or elsewhere does instead of the system's where it would
// be more than the pool ever held, beyond the limit, or none is left. Where pages can be moved they
// are, once there is a place for them; else they are let go first. None are where that cannot help.
block* pool::obtain_new(heap& from, std::uint64_t size, std::uint64_t alignment) noexcept {
  if (limit_ != 0 && reserved() - free_bytes() + size > limit_) return nullptr;
  const bool moves = from.range().can_move();
  if (!moves) {
    const heap::growth first = from.plan_growth(size, alignment);
    const std::uint64_t spread = bytes_to_recycle(first, size), begin = core::ticks_now();
    recycled_ += trim_free(spread, first.joined);
    if (spread > 0) recycling_ticks_ += core::ticks_now() - begin;
  }
  while (true) {
    const heap::growth planned = from.plan_growth(size, alignment);
    if (planned.into == nullptr) return nullptr;
    const std::uint64_t after = reserved() + planned.bytes();
    const std::uint64_t beyond = limit_ != 0 && after > limit_ ? after - limit_ : 0;
    const std::uint64_t spread = moves ? bytes_to_recycle(planned, size) : 0;
    block* grown = moves || beyond == 0 ? from.grow(planned, size) : nullptr;
    if (grown != nullptr) {
      if (supplied(*grown, from, planned, std::max(moves ? beyond : 0, spread))) return grown;
    }
    // What is let go may move the plan to where more is needed: as long as something is.
    block* spared = grown == nullptr ? planned.joined : nullptr;
    if (trim_free(beyond != 0 ? beyond : planned.bytes(), spared) == 0) return nullptr;
  }
}

// A growth may go as far as the pool ever went, and to a little more than the most in use at a
// time. What goes beyond is recycled: an eighth of what the pool ever held, as much again, up to 32
// MiB, each time that the bytes handed out have doubled, and more for a 64th of the pool's age.
std::uint64_t pool::bytes_to_recycle(const heap::growth& planned,
                                     std::uint64_t size) const noexcept {
  const std::uint64_t after = reserved() + planned.bytes();
  const auto live_peak = static_cast<std::uint64_t>(
      std::max<std::int64_t>(levels_[purposes].peak.load(std::memory_order_relaxed), 0));
  const std::uint64_t used = std::max(live_peak, reserved() - free_bytes() + size);
  const std::uint64_t allowed = std::max(peak_reserved_, used + used / 1024);
  const std::uint64_t turns = taken_bytes_ / std::max<std::uint64_t>(peak_reserved_, 1) + 1;
  const auto doublings = static_cast<std::uint64_t>(64 - __builtin_clzll(turns));
  const std::uint64_t most =
      peak_reserved_ / 8 + doublings * std::min(peak_reserved_, std::uint64_t{32} << 20);
  if (after <= allowed) return 0;
  if (recycled_ >= most && recycling_ticks_ >= (core::ticks_now() - made_at_) / 64) return 0;
  return std::min(after - allowed, planned.bytes());
}

// A block just grown takes over so many bytes of free ones. False: there were fewer than the limit
// wants, and the growth was taken back.
bool pool::supplied(block& grown, heap& of, const heap::growth& planned,
                    std::uint64_t bytes) noexcept {
  heap::landing places = of.landing_in(grown, planned);
  const std::uint64_t first = places.next;
  if (std::min(bytes, places.end - first) >= page_mover::least) places.open();
  const std::uint64_t begin = bytes > 0 ? core::ticks_now() : 0;
  std::uint64_t done = 0;
  for (heap& h : heaps_) {
    if (done >= bytes) break;
    done += h.move_out(bytes - done, places, [&](std::uint64_t start, std::uint64_t gone) {
      if (is_recorded()) note_reserved(h, start, gone, false);
    });
  }
  places.by.close();
  if (places.next != first) grown.zero = false;
  if (done < bytes) done += trim_free(bytes - done, nullptr);
  recycled_ += done;
  if (bytes > 0) recycling_ticks_ += core::ticks_now() - begin;
  const bool within = limit_ == 0 || reserved() <= limit_;
  if (!within) of.shrink(grown, planned, first, places);
  if (within) peak_reserved_ = std::max(peak_reserved_, reserved());
  if (is_recorded() && within) note_reserved(of, planned.first, planned.bytes(), true);
  if (is_recorded() && !within) note_reserved(of, first, places.next - first, true);
  return within;
}

// What is free but not in the heap: this thread's lists, what was left by others, everybody's
// pockets, passed streams.
bool pool::take_in() noexcept {
  const std::uint64_t before = free_bytes();
  void* mine = has_key_ ? pthread_getspecific(key_) : nullptr;
  if (mine != nullptr) static_cast<thread_cache*>(mine)->empty_lists([&](block& b) { give(b); });
  for (thread_cache* c = caches_; c != nullptr; c = c->next)
    c->empty_pockets([&](block& first) { give_chain(first); });
  exchange_.empty([&](block& b) { give(b); });
  take_in_passed();
  return free_bytes() != before;
}

// A stream that is destroyed has passed all.
void pool::take_in_passed() noexcept {
  for (stream_frees& s : streams_) {
    s.collect([&](block& b) {
      if (is_recorded()) note_passed(b);
      retire(b);
    });
  }
}

std::uint64_t pool::trim_free(std::uint64_t bytes, block* but) noexcept {
  std::uint64_t done = 0;
  for (heap& h : heaps_) {
    if (done >= bytes) break;
    block* kept = but != nullptr && but->lifetime == (&h - heaps_) ? but : nullptr;
    done += h.trim(bytes - done, kept, [&](std::uint64_t start, std::uint64_t gone) {
      if (is_recorded()) note_reserved(h, start, gone, false);
    });
  }
  let_go_ += done;
  return done;
}

block* pool::obtain_or_wait(const wanted& what, std::uint64_t size,
                            std::unique_lock<brief_lock>& lock) {
  int in_vain = 0;
  while (true) {
    if (block* taken = obtain(what, size)) return taken;
    if (quarantine_.oldest() != nullptr) {
      while (block* oldest = quarantine_.take()) release_quarantined(*oldest);
      continue;
    }
    drains_.fetch_add(1, std::memory_order_relaxed);
    if (wait_for_stream(lock) || host_helps(what.bytes, in_vain, lock)) continue;
    ++refused_;
    if (is_recorded()) note_refused(what.bytes, what.lifetime);
    fail(VELO_ERR_MEMORY, "request.bytes", text("%llu bytes", number(what.bytes)),
         text("none: %llu in use of %llu reserved, largest hole %llu",
              number(reserved() - free_bytes()), number(reserved()), number(largest_hole())),
         limit_ != 0 ? text("the pool's limit is %llu bytes", number(limit_))
                     : text("out of memory"));
  }
}

// True when something freed on a stream has come back. Without the lock while it waits: the work
// it waits for may need the pool.
bool pool::wait_for_stream(std::unique_lock<brief_lock>& lock) {
  for (const stream_frees& s : streams_) {
    const std::shared_ptr<core::point> next = s.next_to_pass();
    if (next == nullptr) continue;
    lock.unlock();
    const bool passed = next->wait(patience_ns);
    lock.lock();
    if (passed) return true;
  }
  return false;
}

// in_vain: answers in a row that promised something though no block came back. What the host freed
// elsewhere the pool cannot see: these may be a few.
bool pool::host_helps(std::uint64_t bytes, int& in_vain, std::unique_lock<brief_lock>& lock) {
  if (pressure_ == nullptr || in_vain == most_in_vain) return false;
  if (core::is_inside(handle_, core::part::carries))
    fail(VELO_ERR_STATE, "pool", "a request that finds memory, in the pool's pressure function",
         text("one of %llu bytes that would call it again", number(bytes)));
  const core::inside_scope here(handle_, core::part::carries);
  const auto live = [&] { return sum([](const tally& t) { return t.bytes(purposes); }); };
  const std::int64_t before = live();
  lock.unlock();
  const std::int32_t answer =
      core::call_host("desc.pressure", [&] { return pressure_(pressure_user_, bytes); });
  if (answer != 0 && answer != 1)
    fail(VELO_ERR_FOREIGN, "desc.pressure", "1 = try again, or 0", text("%d", answer));
  lock.lock();
  in_vain = live() < before ? 0 : in_vain + 1;
  return answer == 1;
}

void pool::drain(thread_cache& mine) noexcept {
  mine.drains_seen = drains_.load(std::memory_order_relaxed);
  mine.empty_lists([&](block& b) { give(b); });
}

}  // namespace velo::memory
