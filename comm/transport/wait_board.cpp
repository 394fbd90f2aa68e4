// Follows notes from rank to rank.
#include "comm/transport/wait_board.hpp"

#include <utility>

#include "comm/transport/blame.hpp"

namespace velo::comm {
namespace {

// Returns whether a rank waits or has met a fault of another; adds the ranks that it waits for.
bool is_blocked(const wait_notes& notes, int of, std::int64_t timeout_ns, rank_set& by) noexcept {
  bool waits = false;
  for (int note = 0; note < wait_notes::count; ++note) {
    fault what;
    const rank_set awaited = notes.read(of, note, timeout_ns, what);
    if (awaited.has(of)) return false;
    for (int rank = 0; rank < notes.ranks(); ++rank)
      if (awaited.has(rank)) by.add(rank), waits = true;
  }
  return waits;
}

// Copies to `what` the call and the part in which some rank waits for the missed one.
void find_missed(const wait_notes& notes, int missed, fault& what) noexcept {
  for (int rank = 0; rank < notes.ranks(); ++rank)
    for (int note = 0; note < wait_notes::count; ++note) {
      fault found = what;
      if (!notes.read(rank, note, what.timeout_ns, found).has(missed)) continue;
      what = found;
      return;
    }
}

}  // namespace

wait_board::wait_board(std::shared_ptr<wait_notes> notes) noexcept : notes_(std::move(notes)) {}

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

bool wait_board::others_are_late() const noexcept {
  return notes_ != nullptr && notes_->others_are_late();
}

void wait_board::write(int note, const fault& what) const noexcept {
  if (what.is_outermost) return notes_->write(note, what);
  fault named = what;
  named.culprits = ranks_.outermost(what.culprits);
  core::copy_text(named.part, sizeof named.part, label_);
  notes_->write(note, named);
}

void wait_board::meet(const fault& why) const noexcept {
  if (notes_ != nullptr) write(wait_notes::fault_note, why);
}

void wait_board::forget() const noexcept {
  if (notes_ != nullptr) notes_->erase(wait_notes::fault_note);
}

void wait_board::follow_waits(fault& why) const noexcept {
  if (notes_ == nullptr || why.is_outermost) return;
  const rank_set ends = to_blame(
      notes_->ranks(), notes_->rank(), ranks_.outermost(why.culprits),
      [&](int peer, rank_set& by) { return is_blocked(*notes_, peer, why.timeout_ns, by); });
  const rank_set awaited = why.culprits & ranks_.here(ends);
  if (awaited.lowest() >= 0) {
    why.culprits = awaited;
    return;
  }
  why.culprits = ends;
  why.is_outermost = true;
  find_missed(*notes_, ends.lowest(), why);
}

noted_wait::~noted_wait() {
  free_slot();
}

// Writes nothing if more waits are under way than there are notes.
void noted_wait::renew(const fault& what) noexcept {
  if (on_.notes_ == nullptr) return;
  std::atomic<std::uint32_t>& used = on_.notes_->used_;
  std::uint32_t seen = used.load();
  while (note_ == 0) {
    int free = 1;
    while (free < wait_notes::count && (seen >> static_cast<unsigned>(free) & 1) != 0) ++free;
    if (free == wait_notes::count) return;
    if (used.compare_exchange_weak(seen, seen | 1u << static_cast<unsigned>(free))) note_ = free;
  }
  on_.write(note_, what);
}

void noted_wait::clear() noexcept {
  if (note_ != 0) on_.notes_->erase(note_);
  free_slot();
}

void noted_wait::free_slot() noexcept {
  if (note_ != 0) on_.notes_->used_.fetch_and(~(1u << static_cast<unsigned>(note_)));
  note_ = 0;
}

}  // namespace velo::comm
