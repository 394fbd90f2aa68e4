// Recording and replay. A replayed request is matched, gets its planned address, or goes to the
// pool.
#include "memory/plan/steps.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/failure.hpp"
#include "core/round_up.hpp"

namespace velo::memory {

using core::fail;

namespace {

// Requests that are compared with a new one, from the cursor on and before the cursor. More are
// compared before it: a cursor that has moved too far ahead must find its way back.
constexpr std::size_t ahead = 16;
constexpr std::size_t behind = 64;
constexpr std::size_t most_lost = 16;  // unmatched requests in a row before the cursor stays
constexpr std::size_t nobody = ~std::size_t{0};

// Addresses are sums of sizes: multiples of the granularity. More alignment takes room.
std::uint64_t size_of(const pool_request& request, std::uint64_t granularity) noexcept {
  const std::uint64_t slack =
      request.alignment > granularity ? request.alignment - granularity : std::uint64_t{0};
  return core::round_up(std::max<std::uint64_t>(request.bytes, 1), granularity) + slack;
}

// The id of this thread; one system call a thread.
pid_t this_thread() noexcept {
  static thread_local pid_t number = 0;
  if (number == 0) number = gettid();
  return number;
}

bool same_kind(const pool_request& a, const pool_request& b) noexcept {
  return a.purpose == b.purpose && a.lifetime == b.lifetime &&
         (a.stream == nullptr) == (b.stream == nullptr);
}

bool same(const pool_request& a, const pool_request& b) noexcept {
  return a.bytes == b.bytes && a.alignment == b.alignment && same_kind(a, b);
}

// Room for one more, so that adding it cannot fail.
template <class T>
void make_way(std::vector<T>& in) {
  if (in.size() == in.capacity()) in.reserve(2 * in.size() + 16);
}

}  // namespace

// Arenas with blocks in use stay mapped.
plan_steps::~plan_steps() {
  for (std::unique_ptr<plan_arena>& a : arenas_) {
    if (!a->empty()) {
      a->leave();
      continue;
    }
    try {
      home().uncharge(a->reserved());
    } catch (const core::failure&) {
      // the pool ended earlier
    }
  }
}

pool& plan_steps::home() const {
  auto& found = core::resolve<pool>(pool_, "plan.pool");
  if (found.is_closed()) fail(VELO_ERR_HANDLE, "plan.pool", "a pool", "a destroyed pool");
  return found;
}

void plan_steps::begin(velo_plan_mode mode) {
  cursors_.assign(1, {this_thread(), 0});
  const std::uint64_t steps = counted_.steps + 1;
  const std::uint64_t peak = counted_.bytes_reserved_peak, let_go = counted_.bytes_let_go;
  counted_ = {};
  counted_.mode = mode;
  counted_.steps = steps;
  counted_.bytes_reserved_peak = peak;
  counted_.bytes_let_go = let_go;
  open_ = true;
}

void plan_steps::record() {
  home();
  const std::lock_guard<std::mutex> lock(lock_);
  threads_.assign(1, {});
  requests_.clear();
  lives_.clear();
  uses_ = {};
  alive_.clear();
  time_ = 0;
  recorded_ = false;
  begin(VELO_PLAN_RECORD);
}

void plan_steps::replay(const placement& addresses) {
  pool& in = home();
  const std::lock_guard<std::mutex> lock(lock_);
  if (moved_) {
    in.trim(0);  // free blocks that the recording left
    auto made =
        std::make_unique<plan_arena>(in.kind(), static_cast<std::uint64_t>(addresses.height));
    std::vector<std::uint64_t> offsets(addresses.offsets.begin(), addresses.offsets.end());
    std::vector<std::uint64_t> answered(requests_.size());
    arenas_.reserve(arenas_.size() + 1);
    if (!arenas_.empty() && arenas_.back()->empty()) {
      in.uncharge(arenas_.back()->reserved());
      arenas_.pop_back();
    }
    arenas_.push_back(std::move(made));
    offsets_ = std::move(offsets);
    answered_ = std::move(answered);
    moved_ = false;
  }
  begin(VELO_PLAN_REPLAY);
  counted_.bytes_planned = static_cast<std::uint64_t>(addresses.height);
  most_ = in.bytes_in_use() + counted_.bytes_planned;
}

plan_steps::recording plan_steps::recorded(std::int64_t most) const {
  const std::lock_guard<std::mutex> lock(lock_);
  recording made;
  made.granularity = 4096;
  for (std::size_t i = 0; i < requests_.size(); ++i)
    if (lives_[i].end != 0)
      made.granularity = std::min(made.granularity, requests_[i].request.alignment);
  made.buffer_of.assign(requests_.size(), -1);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (lives_[i].end == 0) continue;
    const std::uint64_t size = size_of(requests_[i].request, made.granularity);
    const std::int64_t left = std::numeric_limits<std::int64_t>::max() - sum;
    if (size > static_cast<std::uint64_t>(std::min(most, left))) continue;
    made.buffer_of[i] = static_cast<std::int64_t>(made.buffers.size());
    made.buffers.push_back({lives_[i].begin, lives_[i].end, static_cast<std::int64_t>(size)});
    sum += static_cast<std::int64_t>(size);
  }
  for (const plan_use& u : uses_.uses)
    if (made.buffer_of[u.buffer] >= 0)
      made.uses.uses.push_back({made.buffer_of[u.buffer], u.time, u.access});
  made.uses.work = uses_.work;
  return made;
}

// Requests made since recorded() are not part of the recording.
void plan_steps::end(const recording* made) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  open_ = false;
  if (made == nullptr) {
    for (const std::uint64_t step : answered_)
      if (step != counted_.steps) ++counted_.missing;
    return;
  }
  alive_.clear();
  const std::size_t count = made->buffer_of.size();
  requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(count), requests_.end());
  for (std::vector<std::int32_t>& order : threads_)
    while (!order.empty() && static_cast<std::size_t>(order.back()) >= count) order.pop_back();
  for (std::size_t i = 0; i < count; ++i) requests_[i].buffer = made->buffer_of[i];
  granularity_ = made->granularity;
  recorded_ = true;
  moved_ = true;
}

void* plan_steps::allocate(const pool_request& request) {
  pool& from = home();
  void* memory = nullptr;
  {
    const std::lock_guard<std::mutex> lock(lock_);
    if (open_) ++counted_.allocations;
    const bool replays = open_ && counted_.mode == VELO_PLAN_REPLAY;
    if (replays) memory = take_matched(from, request);
    const std::uint64_t size = block_size(request.bytes);
    if (replays && memory == nullptr && from.needs_room(size)) make_room(from, size);
  }
  if (memory != nullptr) {
    if (request.zero) std::memset(memory, 0, request.bytes);
    return memory;
  }
  return note(from, request);
}

// Allocates from the pool and adds the request to the recording, if there is one.
void* plan_steps::note(pool& from, const pool_request& request) {
  void* memory = from.allocate(request);
  const std::lock_guard<std::mutex> lock(lock_);
  if (!open_ || counted_.mode != VELO_PLAN_RECORD) return memory;
  const auto index = static_cast<std::int32_t>(requests_.size());
  try {
    make_way(requests_);
    make_way(lives_);
    std::vector<std::int32_t>& order = threads_[cursor_here(request).recorded];
    make_way(order);
    alive_[memory] = index;
    order.push_back(index);
  } catch (...) {
    from.free(memory, request.bytes, nullptr);
    throw;
  }
  requests_.push_back({request, -1});
  lives_.push_back({time_++, 0});
  return memory;
}

plan_steps::cursor& plan_steps::cursor_here(const pool_request& request) {
  const pid_t here = this_thread();
  for (cursor& c : cursors_)
    if (c.thread == here) return c;
  std::size_t follows = nobody;
  if (counted_.mode == VELO_PLAN_RECORD) {
    follows = threads_.size();
    threads_.emplace_back();
  } else {
    for (std::size_t t = 1; t < threads_.size() && follows == nobody; ++t) {
      const bool followed = std::any_of(cursors_.begin(), cursors_.end(),
                                        [&](const cursor& c) { return c.recorded == t; });
      if (!followed && !threads_[t].empty() &&
          same(requests_[threads_[t].front()].request, request))
        follows = t;
    }
  }
  cursors_.push_back({here, follows});
  return cursors_.back();
}

// The recorded request that this one is, or -1; moves the cursor on.
std::int64_t plan_steps::match(cursor& at, const pool_request& request) {
  if (at.recorded == nobody) return -1;
  const std::vector<std::int32_t>& order = threads_[at.recorded];
  const auto is = [&](std::size_t index) {
    return index < order.size() && answered_[order[index]] != counted_.steps &&
           same(requests_[order[index]].request, request);
  };
  std::size_t found = order.size();
  if (is(at.next)) found = at.next;
  for (std::size_t d = 1; found == order.size() && d <= std::min(behind, at.next); ++d)
    if (is(at.next - d)) found = at.next - d;
  for (std::size_t d = 1; found == order.size() && d <= ahead; ++d)
    if (is(at.next + d)) found = at.next + d;
  if (found == order.size()) return -1;
  at.lost = 0;
  at.next = std::max(at.next, found + 1);
  return order[found];
}

// Memory at the planned address of the request; nullptr: there is none, or it is in use.
void* plan_steps::take_matched(pool& from, const pool_request& request) {
  cursor& at = cursor_here(request);
  const std::int64_t found = match(at, request);
  if (found >= 0) {
    answered_[found] = counted_.steps;
    const std::int64_t buffer = requests_[found].buffer;
    void* memory = buffer >= 0 ? take(from, buffer, request) : nullptr;
    ++(buffer < 0 ? counted_.outliving : memory != nullptr ? counted_.matched : counted_.displaced);
    return memory;
  }
  // An unmatched request is probably the next recorded one with another size, so it takes that
  // buffer's memory if it fits. After `most_lost` unmatched requests in a row this is no longer
  // assumed.
  void* memory = nullptr;
  if (at.recorded != nobody && at.next < threads_[at.recorded].size() && at.lost < most_lost) {
    ++at.lost;
    const std::int32_t expected = threads_[at.recorded][at.next++];
    const recorded_request& r = requests_[expected];
    const std::uint64_t size = size_of(r.request, granularity_);
    const bool fits = r.buffer >= 0 && same_kind(r.request, request) && request.bytes <= size &&
                      request.bytes >= size / 2 && size_of(request, granularity_) <= size;
    if (fits && (memory = take(from, r.buffer, request)) != nullptr)
      answered_[expected] = counted_.steps;
  }
  ++(memory != nullptr ? counted_.resized : counted_.unexpected);
  return memory;
}

void* plan_steps::take(pool& from, std::int64_t buffer, const pool_request& request) {
  collect(from);
  plan_arena& arena = *arenas_.back();
  const std::uint64_t offset = offsets_[buffer];
  if (!arena.take(offset, size_of(request, granularity_), request.bytes, request.alignment))
    return nullptr;
  char* memory = nullptr;
  if (const std::uint64_t missing = arena.missing(offset); missing == 0) {
    memory = arena.back(offset);
  } else {
    make_room(from, missing);
    const std::uint64_t before = arena.reserved();
    if (from.charge(missing)) {
      memory = arena.back(offset);
      from.uncharge(missing - (arena.reserved() - before));
    }
  }
  if (memory == nullptr) arena.give(offset);
  counted_.bytes_reserved_peak = std::max(counted_.bytes_reserved_peak, arena.reserved());
  return memory;
}

// Trims memory of the pool's free blocks, then memory behind the arena's unused addresses, so that
// the pool holds no more than the step needs.
void plan_steps::make_room(pool& in, std::uint64_t bytes) {
  const std::uint64_t excess = in.make_room(bytes, most_);
  if (excess == 0) return;
  const std::uint64_t let_go = arenas_.back()->trim(excess);
  counted_.bytes_let_go += let_go;
  in.uncharge(let_go);
}

void plan_steps::free(void* memory, std::uint64_t bytes, velo_stream stream) {
  pool& of = home();
  std::int32_t noted = -1;
  std::uint64_t step = 0;
  {
    const std::lock_guard<std::mutex> lock(lock_);
    if (free_planned(of, memory, stream)) return;
    step = counted_.steps;
    const auto found = alive_.find(memory);
    if (found != alive_.end()) {
      noted = found->second;
      alive_.erase(found);
      lives_[noted].end = queued_stream(stream, "stream") == nullptr ? time_++ : 0;
    }
  }
  try {
    of.free(memory, bytes, stream);
  } catch (...) {
    const std::lock_guard<std::mutex> lock(lock_);
    if (noted >= 0 && step == counted_.steps) lives_[noted].end = 0;
    throw;
  }
}

// False: it is not at an address of this plan.
bool plan_steps::free_planned(pool& of, void* memory, velo_stream stream) {
  core::stream* on = queued_stream(stream, "stream");
  for (const std::unique_ptr<plan_arena>& a : arenas_) {
    plan_arena& arena = *a;
    if (!arena.holds(memory)) continue;
    const std::uint64_t offset = arena.find(memory);
    if (on == nullptr) {
      give(of, arena, offset);
    } else {
      pending_.push_back({std::make_shared<core::point>(), &arena, offset});
      try {
        on->pass(pending_.back().until);
        arena.at(offset).pending = true;
      } catch (const core::failure& why) {
        pending_.pop_back();
        if (why.code == VELO_ERR_FULL) throw;
        give(of, arena, offset);  // the stream holds a failure: nothing of it runs any more
      }
    }
    return true;
  }
  return false;
}

// An arena of former addresses goes with its last block.
void plan_steps::give(pool& of, plan_arena& from, std::uint64_t offset) noexcept {
  from.give(offset);
  if (!from.empty() || &from == arenas_.back().get()) return;
  of.uncharge(from.reserved());
  const auto is = [&](const std::unique_ptr<plan_arena>& a) { return a.get() == &from; };
  arenas_.erase(std::find_if(arenas_.begin(), arenas_.end(), is));
}

// Gives back the blocks freed on streams that have come so far.
void plan_steps::collect(pool& of) noexcept {
  for (std::size_t i = 0; i < pending_.size();) {
    const pending p = pending_[i];
    if (!p.until->passed()) {
      ++i;
      continue;
    }
    pending_[i] = std::move(pending_.back());
    pending_.pop_back();
    give(of, *p.from, p.offset);
  }
}

void plan_steps::use(const void* memory, velo_access access) {
  const std::lock_guard<std::mutex> lock(lock_);
  if (!open_ || counted_.mode != VELO_PLAN_RECORD) return;
  const auto found = alive_.find(memory);
  if (found != alive_.end()) {
    uses_.uses.push_back({found->second, time_, access});
    ++time_;
  }
}

void plan_steps::work(double seconds) {
  const std::lock_guard<std::mutex> lock(lock_);
  if (!open_ || counted_.mode != VELO_PLAN_RECORD) return;
  uses_.work.push_back({time_, seconds});
  ++time_;
}

void plan_steps::fill(velo_plan_step& step) const {
  const std::lock_guard<std::mutex> lock(lock_);
  step = counted_;
  for (const std::unique_ptr<plan_arena>& a : arenas_) {
    step.bytes_reserved += a->reserved();
    step.bytes_live += a->requested();
  }
}

}  // namespace velo::memory
