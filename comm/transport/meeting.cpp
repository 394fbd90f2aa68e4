// Waiting for peers, and what can come instead of them.
#include "comm/transport/meeting.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>

namespace velo::comm {
namespace {

constexpr std::int64_t yield_ns = 200000;     // after spinning, before sleeping
constexpr std::int64_t around_from = 4096;    // bytes staged around the cache
constexpr std::int64_t glance_ns = 50000000;  // the longest sleep

std::int64_t now_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000000000} + now.tv_nsec;
}

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

meeting::meeting(place& at, const operation& what, core::execution& state)
    : what(what),
      state(state),
      rank(at.rank),
      size(at.area.ranks()),
      at_(at),
      sequence_(++at.met) {}

void meeting::arrive(const void* payload, std::int64_t bytes) {
  mailbox& mine = box(rank);
  mine.terms = what.terms;
  mine.signature = what.terms.signature();
  if (bytes > 0) std::memcpy(mine.payload, payload, static_cast<std::size_t>(bytes));
  at_.area.post(rank, mine.sequence, sequence_);
}

void meeting::meet() {
  const std::uint64_t agreed = box(rank).signature;
  bool same = true;
  for (int peer = 0; peer < size; ++peer) {
    wait(peer, box(peer).sequence, sequence_);
    same = same && box(peer).signature == agreed;
  }
  if (!same) compare();
}

// Ranks disagree: those are right whose terms most have, of equal numbers those of the lowest rank.
void meeting::compare() {
  int right = 0, most = 0;
  for (int one = 0; one < size; ++one) {
    int alike = 0;
    for (int peer = 0; peer < size; ++peer) alike += box(peer).signature == box(one).signature;
    if (alike > most) most = alike, right = one;
  }
  fault why;
  for (int peer = 0; peer < size; ++peer)
    if (box(peer).signature != box(right).signature) why.culprits.add(peer);
  why.kind = fault::how::disagree;
  why.sequence = sequence_;
  why.terms = box(right).terms;
  why.other = box(why.culprits.lowest()).terms;
  at_.area.note(why);
  at_.area.noted(why);
  why.raise();
}

meeting::opening meeting::opening_of(int by) const noexcept {
  opening theirs;
  std::memcpy(&theirs, payload(by), sizeof theirs);
  return theirs;
}

std::int64_t meeting::meet_for(std::int64_t steps, std::int64_t saying) {
  const opening mine{steps, saying};
  arrive(&mine, sizeof mine);
  meet();
  for (int peer = 0; peer < size; ++peer) steps = std::max(steps, opening_of(peer).steps);
  return steps;
}

// What others read goes around the cache, whose lines they would have to wait for; small pieces go
// through it, for the fence would cost more.
void meeting::stage(const void* from, char* to, std::int64_t bytes) const {
  if (bytes >= around_from) {
    kernels().copy_around_cache({from, to, bytes});
  } else if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

void meeting::fetch(const char* from, void* to, std::int64_t bytes) const {
  if (what.is_large(state.caches.l3)) {
    kernels().copy_around_cache({from, to, bytes});
  } else if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

void meeting::disagree(int with, std::int64_t wanted, std::int64_t got) {
  fault why;
  why.kind = fault::how::disagree;
  why.sequence = sequence_;
  why.culprits.add(with);
  why.terms = why.other = what.terms;
  why.terms.count = wanted;
  why.other.count = got;
  at_.area.note(why);
  at_.area.noted(why);
  why.raise();
}

void meeting::begin_step() {
  for (int peer = 0; peer < size; ++peer) wait(peer, at_.area.state(peer).steps, at_.steps);
}

void meeting::post_step() {
  at_.area.post(rank, at_.area.state(rank).steps, at_.steps + 1);
}

void meeting::await_step() {
  for (int peer = 0; peer < size; ++peer) wait(peer, at_.area.state(peer).steps, at_.steps + 1);
}

void meeting::wait_longer(int peer, std::atomic<std::uint64_t>& word, std::uint64_t wanted) {
  const auto there = [&] { return word.load(std::memory_order_acquire) >= wanted; };
  for (int i = 0; i < 256; ++i) {  // a few microseconds
    if (there()) return;
    pause();
  }
  const std::int64_t begin = now_ns();
  while (!there()) {
    const std::int64_t waited = now_ns() - begin;
    if (waited < at_.spin_ns) {
      for (int i = 0; i < 32 && !there(); ++i) pause();
      continue;
    }
    look_around(peer, word, wanted, waited);
    if (waited < at_.spin_ns + yield_ns) {
      sched_yield();
    } else {
      at_.area.sleep(peer, word, wanted, std::min(glance_ns, at_.timeout_ns - waited));
    }
  }
}

// Whether there is anything left to wait for.
void meeting::look_around(int peer, const std::atomic<std::uint64_t>& word, std::uint64_t wanted,
                          std::int64_t waited_ns) {
  fault known;
  if (at_.area.noted(known)) known.raise();
  const bool gone = at_.area.state(peer).left.load(std::memory_order_acquire) != 0;
  if (word.load(std::memory_order_acquire) >= wanted) return;
  rank_set culprits;
  if (gone) {
    culprits.add(peer);
    end_group(fault::how::left, culprits);
  }
  char cause[128] = "";
  if (at_.watch != nullptr && waited_ns >= yield_ns && at_.watch->find_gone(culprits, cause))
    end_group(fault::how::ended, culprits, cause);
  if (waited_ns < at_.timeout_ns) return;
  culprits = late_ranks();
  if (culprits.lowest() >= 0) end_group(fault::how::late, culprits);
}

// Those that did not arrive; when all did, those that are furthest behind.
rank_set meeting::late_ranks() const noexcept {
  rank_set late;
  std::uint64_t least = at_.area.state(rank).steps.load(std::memory_order_acquire);
  for (int peer = 0; peer < size; ++peer) {
    if (box(peer).sequence.load(std::memory_order_acquire) < sequence_) late.add(peer);
    least = std::min(least, at_.area.state(peer).steps.load(std::memory_order_acquire));
  }
  if (late.lowest() >= 0) return late;
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank && at_.area.state(peer).steps.load(std::memory_order_acquire) == least)
      late.add(peer);
  return late;
}

void meeting::end_group(fault::how kind, const rank_set& culprits, const char* cause) {
  fault why;
  why.kind = kind;
  why.sequence = sequence_;
  why.terms = what.terms;
  why.timeout_ns = at_.timeout_ns;
  why.culprits = culprits;
  core::copy_text(why.cause, sizeof why.cause, cause);
  at_.area.note(why);
  at_.area.noted(why);  // another's, if that came first
  why.raise();
}

}  // namespace velo::comm
