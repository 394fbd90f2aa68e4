// Writes notes and follows them.
#include "comm/transport/shared/wait_board.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/transport/blame.hpp"
#include "comm/transport/shared/rank_context.hpp"

namespace velo::comm {
namespace {

// A note of a wait lapses when its rank has not renewed it for ten sleeps, or for a fourth of the
// deadline: a waiting rank may have to wait for a processor, too.
constexpr std::int64_t least_silence_ns = 10 * poll_interval_ns;
constexpr int most_reads = 1000;  // of a note that is being written
constexpr int fault_note = 0;

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

// The awaited ranks of a note, and its call and part in `what`. None if there is no note or it has
// lapsed.
rank_set read(const wait_note& from, int ranks, std::int64_t silence_ns, fault& what) noexcept {
  read_note note;
  note.what = what;
  if (!read(from, note) || !holds(note.renewed, silence_ns)) return {};
  what = note.what;
  rank_set all;
  for (; note.awaited != 0; note.awaited >>= 16) {
    const auto rank = static_cast<int>(note.awaited & 0xffff) - 1;
    if (rank >= 0 && rank < ranks) all.add(rank);
  }
  return all;
}

}  // namespace

// The place of a rank's notes, and a bit for each note in use.
struct wait_board::place {
  const shared_area area;
  const std::shared_ptr<void> memory;
  const int rank;
  std::atomic<std::uint32_t> used{1u << fault_note};

  wait_note& note(int number) const noexcept { return area.state(rank).notes[number]; }

  // Returns whether a rank waits or has met a fault of another; adds the ranks that it waits for.
  bool is_blocked(int of, std::int64_t silence_ns, rank_set& by) const noexcept {
    bool waits = false;
    for (const wait_note& one : area.state(of).notes) {
      fault what;
      const rank_set awaited = read(one, area.ranks(), silence_ns, what);
      if (awaited.has(of)) return false;
      for (int rank = 0; rank < area.ranks(); ++rank)
        if (awaited.has(rank)) by.add(rank), waits = true;
    }
    return waits;
  }
  // Copies to `what` the call and the part in which some rank waits for the missed one.
  void find_missed(int missed, std::int64_t silence_ns, fault& what) const noexcept {
    for (int rank = 0; rank < area.ranks(); ++rank)
      for (const wait_note& one : area.state(rank).notes) {
        fault found = what;
        if (!read(one, area.ranks(), silence_ns, found).has(missed)) continue;
        what = found;
        return;
      }
  }
};

wait_board::wait_board(const shared_area& area, std::shared_ptr<void> memory, int rank)
    : place_(new place{area, std::move(memory), rank}) {}

wait_board wait_board::part(const std::vector<int>& ranks) const {
  wait_board made = *this;
  made.ranks_ = ranks_.part(ranks);
  return made;
}

void wait_board::set_label(const std::string& label) noexcept {
  core::copy_text(label_, sizeof label_, label.c_str());
}

rank_set wait_board::culprits_here(const fault& why) const noexcept {
  return why.is_outermost ? ranks_.here(why.culprits) : why.culprits;
}

void wait_board::write(int note, const fault& what, std::uint64_t renewed) const noexcept {
  wait_note& to = place_->note(note);
  const rank_set all = what.is_outermost ? what.culprits : ranks_.outermost(what.culprits);
  std::uint64_t awaited = 0;
  for (int rank = 0, count = 0; rank < place_->area.ranks(); ++rank)
    if (all.has(rank) && count < wait_note::most_awaited)
      awaited |= static_cast<std::uint64_t>(rank + 1) << 16 * count++;
  char label[sizeof fault::part] = "";
  core::copy_text(label, sizeof label, what.is_outermost ? what.part : label_);
  to.written.fetch_add(1, std::memory_order_acq_rel);  // odd: it is being written
  to.renewed.store(renewed, std::memory_order_release);
  to.awaited.store(awaited, std::memory_order_release);
  to.sequence.store(what.sequence, std::memory_order_release);
  store(to.label, label);
  store(to.what, what.terms);
  to.written.fetch_add(1, std::memory_order_acq_rel);
}

void wait_board::meet(const fault& why) const noexcept {
  if (place_ != nullptr) write(fault_note, why, wait_note::holds);
}

void wait_board::forget() const noexcept {
  if (place_ != nullptr) place_->note(fault_note).renewed.store(0, std::memory_order_release);
}

void wait_board::follow_waits(fault& why) const noexcept {
  if (place_ == nullptr || why.is_outermost) return;
  const std::int64_t silence_ns = std::max(least_silence_ns, why.timeout_ns / 4);
  const rank_set ends =
      to_blame(place_->area.ranks(), place_->rank, ranks_.outermost(why.culprits),
               [&](int peer, rank_set& by) { return place_->is_blocked(peer, silence_ns, by); });
  const rank_set awaited = why.culprits & ranks_.here(ends);
  if (awaited.lowest() >= 0) {
    why.culprits = awaited;
    return;
  }
  why.culprits = ends;
  why.is_outermost = true;
  place_->find_missed(ends.lowest(), silence_ns, why);
}

noted_wait::~noted_wait() {
  if (note_ != 0) on_.place_->used.fetch_and(~(1u << static_cast<unsigned>(note_)));
}

// Writes nothing if more waits are under way than there are notes.
void noted_wait::renew(const fault& what) noexcept {
  if (on_.place_ == nullptr) return;
  std::atomic<std::uint32_t>& used = on_.place_->used;
  std::uint32_t seen = used.load();
  while (note_ == 0) {
    int free = 1;
    while (free < wait_note::count && (seen >> static_cast<unsigned>(free) & 1) != 0) ++free;
    if (free == wait_note::count) return;
    if (used.compare_exchange_weak(seen, seen | 1u << static_cast<unsigned>(free))) note_ = free;
  }
  on_.write(note_, what, static_cast<std::uint64_t>(now_ns()));
}

void noted_wait::clear() noexcept {
  if (note_ != 0) on_.place_->note(note_).renewed.store(0, std::memory_order_release);
}

}  // namespace velo::comm
