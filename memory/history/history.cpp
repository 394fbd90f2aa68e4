// Pages are exchanged under the history's own lock, and come from new, not from the pool, whose
// lock may be held.
#include "memory/history/history.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace velo::memory {

std::int64_t memory_levels::all() const noexcept {
  std::int64_t sum = 0;
  for (const std::int64_t bytes : live) sum += bytes;
  return sum;
}

void memory_levels::follow(const event& e) noexcept {
  const auto bytes = static_cast<std::int64_t>(e.size);
  switch (e.kind) {
    case event_kind::allocated:
      live[e.purpose] += bytes;
      break;
    case event_kind::freed:
    case event_kind::free_requested:
      live[e.purpose] -= bytes;
      break;
    case event_kind::mapped:
      reserved += bytes;
      break;
    case event_kind::unmapped:
      reserved -= bytes;
      break;
    case event_kind::free_completed:
    case event_kind::refused:
    case event_kind::annotated:
      break;
  }
}

void past::drop(const event& e) noexcept {
  before.follow(e);
  ++dropped;
  if (e.kind == event_kind::annotated && e.address == 0)
    std::memcpy(note_before, text(e), e.requested + 1);
}

void history::queue::put(event_page* p) noexcept {
  p->next = nullptr;
  (last != nullptr ? last->next : first) = p;
  last = p;
  ++pages;
  events += p->written();
}

event_page* history::queue::take() noexcept {
  event_page* p = first;
  if (p == nullptr) return nullptr;
  first = p->next;
  if (first == nullptr) last = nullptr;
  --pages;
  events -= p->written();
  return p;
}

history::~history() {
  while (event_page* p = full_.take()) delete p;
  while (event_page* p = spare_.take()) delete p;
  while (writing_ != nullptr) delete std::exchange(writing_, writing_->next);
}

// Threads keep the pages that they are writing; the events there are older than the new beginning.
void history::start(std::uint64_t events, const memory_levels& now) {
  const std::lock_guard<std::mutex> lock(lock_);
  queue fresh;
  const std::uint64_t wanted = events / event_page::most + 3;  // two are partly filled
  try {
    while (spare_.pages + full_.pages + fresh.pages < wanted)
      fresh.put(new event_page());  // zeroed, so that its memory is there
  } catch (...) {
    while (event_page* p = fresh.take()) delete p;
    throw;
  }
  while (event_page* p = fresh.take()) spare_.put(p);
  while (event_page* p = full_.take()) spare_.put(p);
  while (spare_.pages > wanted) delete spare_.take();
  bound_ = events;
  dropped_ = past();
  dropped_.before = now;
  dropped_.begin = core::instant::now(CLOCK_REALTIME);
  newest_dropped_ = dropped_.begin.ticks;
}

event_page* history::next_page(event_page* full) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  return replace(full);
}

void history::leave(event_page* last) noexcept {
  if (last == nullptr) return;
  const std::lock_guard<std::mutex> lock(lock_);
  retire(*last);
}

bool history::add(event e, const char* text) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  std::uint32_t entries = 0;
  if (text != nullptr) {
    e.requested = std::strlen(text);
    entries = static_cast<std::uint32_t>(e.requested / sizeof(event)) + 1;
    e.text_entries = static_cast<std::uint8_t>(entries);
  }
  if (shared_ == nullptr || shared_->count + 1 + entries > event_page::most)
    shared_ = replace(shared_);
  if (shared_ == nullptr) return false;
  e.ticks = core::ticks_now();  // under the lock, so that the page stays in order
  const std::uint32_t at = shared_->count;
  if (text != nullptr) std::memcpy(&shared_->events[at + 1], text, e.requested + 1);
  shared_->events[at] = e;
  shared_->texts += entries;
  shared_->count.store(at + 1 + entries, std::memory_order_release);
  return true;
}

void history::drop(const event& e) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  dropped_.drop(e);
  newest_dropped_ = std::max(newest_dropped_, e.ticks);
}

event_page* history::replace(event_page* full) noexcept {
  if (full != nullptr) retire(*full);
  event_page* p = spare_.take();
  const bool is_enough = full_.first != nullptr && full_.events - full_.first->written() >= bound_;
  if (p == nullptr && !is_enough) p = new (std::nothrow) event_page();
  if (p == nullptr && full_.first != nullptr) {
    p = full_.take();
    drop(*p);
  }
  if (p == nullptr) return nullptr;
  p->count.store(0, std::memory_order_relaxed);
  p->texts = 0;
  p->before = nullptr;
  p->next = writing_;
  if (writing_ != nullptr) writing_->before = p;
  writing_ = p;
  return p;
}

void history::retire(event_page& full) noexcept {
  (full.before != nullptr ? full.before->next : writing_) = full.next;
  if (full.next != nullptr) full.next->before = full.before;
  full_.put(&full);
}

void history::drop(event_page& gone) noexcept {
  const std::uint32_t count = gone.count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; i += 1u + gone.events[i].text_entries) {
    const event& e = gone.events[i];
    if (e.ticks <= dropped_.begin.ticks) continue;
    dropped_.drop(e);
    newest_dropped_ = std::max(newest_dropped_, e.ticks);
  }
}

void history::gather(const event_page& from, past& to) const {
  const std::uint32_t count = from.count.load(std::memory_order_acquire);
  const auto first = static_cast<std::uint32_t>(to.events.size());
  to.events.insert(to.events.end(), from.events, from.events + count);
  for (std::uint32_t i = 0; i < count; i += 1u + from.events[i].text_entries) {
    const event& e = from.events[i];
    if (e.ticks <= to.begin.ticks) continue;
    if (e.ticks <= newest_dropped_) {
      to.drop(e);
    } else {
      to.order.push_back({e.ticks, first + i});
    }
  }
}

past history::copy() const {
  past all;
  std::uint64_t bound = 0;
  {
    const std::lock_guard<std::mutex> lock(lock_);
    all = dropped_;
    bound = bound_;
    std::uint64_t pages = full_.pages;
    for (const event_page* p = writing_; p != nullptr; p = p->next) ++pages;
    all.events.reserve(pages * event_page::most);
    all.order.reserve(pages * event_page::most);
    for (const event_page* p = full_.first; p != nullptr; p = p->next) gather(*p, all);
    for (const event_page* p = writing_; p != nullptr; p = p->next) gather(*p, all);
    all.end = core::instant::now(CLOCK_REALTIME);
  }
  const auto earlier = [](const past::position& a, const past::position& b) {
    return a.ticks < b.ticks;
  };
  if (!std::is_sorted(all.order.begin(), all.order.end(), earlier))
    std::stable_sort(all.order.begin(), all.order.end(), earlier);
  if (all.order.size() > bound) {
    const auto kept = all.order.end() - static_cast<std::ptrdiff_t>(bound);
    for (auto p = all.order.begin(); p != kept; ++p) all.drop(all.events[p->at]);
    all.order.erase(all.order.begin(), kept);
  }
  return all;
}

}  // namespace velo::memory
