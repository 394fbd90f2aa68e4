// Writes and reads notes word by word.
#include "comm/transport/shared/area_notes.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/transport/shared/rank_context.hpp"

namespace velo::comm {
namespace {

// A note of a wait lapses when its rank has not renewed it for ten sleeps, or for a fourth of the
// deadline: a waiting rank may have to wait for a processor, too.
constexpr std::int64_t least_silence_ns = 10 * poll_interval_ns;
static_assert(int{wait_note::count} == int{wait_notes::count});
constexpr int most_reads = 1000;  // of a note that is being written

template <std::size_t Words, class T>
void store(std::atomic<std::uint64_t> (&to)[Words], const T& value) noexcept {
  static_assert(sizeof value == 8 * Words);
  std::uint64_t words[Words];
  std::memcpy(words, &value, sizeof words);
  for (std::size_t i = 0; i < Words; ++i) to[i].store(words[i], std::memory_order_release);
}
template <std::size_t Words, class T>
void load(const std::atomic<std::uint64_t> (&from)[Words], T& value) noexcept {
  static_assert(sizeof value == 8 * Words);
  std::uint64_t words[Words];
  for (std::size_t i = 0; i < Words; ++i) words[i] = from[i].load(std::memory_order_acquire);
  std::memcpy(&value, words, sizeof words);
}

// The contents of a note; `what` has its call and part.
struct read_note {
  std::uint64_t renewed, awaited;
  fault what;
};

// Returns false if the note was being written in each of the reads.
bool read(const wait_note& from, read_note& to) noexcept {
  for (int i = 0; i < most_reads; ++i) {
    const std::uint64_t written = from.written.load(std::memory_order_acquire);
    to.renewed = from.renewed.load(std::memory_order_acquire);
    to.awaited = from.awaited.load(std::memory_order_acquire);
    to.what.sequence = from.sequence.load(std::memory_order_acquire);
    load(from.label, to.what.part);
    to.what.part[sizeof to.what.part - 1] = 0;
    load(from.what, to.what.terms);
    if (written % 2 == 0 && from.written.load(std::memory_order_acquire) == written) return true;
  }
  return false;
}

bool holds(std::uint64_t renewed, std::int64_t silence_ns) noexcept {
  if (renewed == 0 || renewed == wait_note::holds) return renewed != 0;
  return now_ns() - static_cast<std::int64_t>(renewed) <= silence_ns;
}

}  // namespace

area_notes::area_notes(const shared_area& area, std::shared_ptr<void> memory, int rank)
    : wait_notes(rank, area.ranks()), area_(area), memory_(std::move(memory)) {}

void area_notes::write(int note, const fault& what) noexcept {
  wait_note& to = area_.state(rank()).notes[note];
  std::uint64_t awaited = 0;
  for (int rank = 0, count = 0; rank < ranks(); ++rank)
    if (what.culprits.has(rank) && count < wait_note::most_awaited)
      awaited |= static_cast<std::uint64_t>(rank + 1) << 16 * count++;
  char label[sizeof fault::part] = "";
  core::copy_text(label, sizeof label, what.part);
  to.written.fetch_add(1, std::memory_order_acq_rel);  // odd: it is being written
  to.renewed.store(note == fault_note ? wait_note::holds : static_cast<std::uint64_t>(now_ns()),
                   std::memory_order_release);
  to.awaited.store(awaited, std::memory_order_release);
  to.sequence.store(what.sequence, std::memory_order_release);
  store(to.label, label);
  store(to.what, what.terms);
  to.written.fetch_add(1, std::memory_order_acq_rel);
}

void area_notes::erase(int note) noexcept {
  area_.state(rank()).notes[note].renewed.store(0, std::memory_order_release);
}

rank_set area_notes::read(int of, int note, std::int64_t timeout_ns, fault& what) const noexcept {
  const std::int64_t silence_ns = std::max(least_silence_ns, timeout_ns / 4);
  read_note one;
  one.what = what;
  if (!comm::read(area_.state(of).notes[note], one) || !holds(one.renewed, silence_ns)) return {};
  what = one.what;
  rank_set all;
  for (; one.awaited != 0; one.awaited >>= 16) {
    const auto rank = static_cast<int>(one.awaited & 0xffff) - 1;
    if (rank >= 0 && rank < ranks()) all.add(rank);
  }
  return all;
}

}  // namespace velo::comm
