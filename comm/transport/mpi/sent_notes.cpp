// Sends notes, and keeps those that arrive.
#include "comm/transport/mpi/sent_notes.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "comm/transport/shared/rank_context.hpp"

namespace velo::comm {
namespace {

// A note lapses after several renewals that did not come: its rank may have to wait for a
// processor.
constexpr std::int64_t least_silence_ns = 500000000, least_renewal_ns = 100000000;

std::int64_t silence_ns(std::int64_t timeout_ns) noexcept {
  return std::max(least_silence_ns, timeout_ns / 4);
}

}  // namespace

std::int64_t sent_notes::renewal_ns(std::int64_t timeout_ns) noexcept {
  return std::max(least_renewal_ns, timeout_ns / 16);
}

sent_notes::sent_notes(std::shared_ptr<mpi_progress> progress, std::uint64_t outermost_group)
    : wait_notes(progress->rank(), progress->size()),
      progress_(std::move(progress)),
      number_(mpi_progress::number_of_notes(outermost_group)) {
  for (int rank = 0; rank < ranks(); ++rank) all_.push_back(rank);
  progress_->add_notes(number_, *this);
}

sent_notes::~sent_notes() {
  progress_->remove(number_);
}

bool sent_notes::keep(int rank, int note, const fault& what) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(lock_);
    notes_.insert_or_assign(place(rank, note), kept{what, now_ns()});
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void sent_notes::write(int note, const fault& what) noexcept {
  if (!keep(rank(), note, what)) return;
  progress_->notify({number_, rank(), notice::what::waits, note, what}, all_);
}

void sent_notes::erase(int note) noexcept {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    if (notes_.erase(place(rank(), note)) == 0) return;
  }
  progress_->notify({number_, rank(), notice::what::resumed, note, {}}, all_);
}

// The silence that ends a note is that of its own timeout, by which its rank renews it.
rank_set sent_notes::read(int of, int note, std::int64_t, fault& what) const noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  const auto found = notes_.find(place(of, note));
  if (found == notes_.end()) return {};
  const fault& from = found->second.what;
  if (note != fault_note && now_ns() - found->second.since_ns > silence_ns(from.timeout_ns))
    return {};
  what.sequence = from.sequence;
  what.terms = from.terms;
  core::copy_text(what.part, sizeof what.part, from.part);
  return from.culprits;
}

bool sent_notes::others_are_late() const noexcept {
  const std::int64_t until = late_until_ns_.load(std::memory_order_relaxed);
  return until != 0 && now_ns() < until;
}

void sent_notes::read(const notice& one) noexcept {
  if (one.from < 0 || one.from >= ranks() || one.note < 0 || one.note >= count) return;
  if (one.kind == notice::what::resumed) {
    const std::lock_guard<std::mutex> lock(lock_);
    notes_.erase(place(one.from, one.note));
  } else if (one.kind == notice::what::waits) {
    keep(one.from, one.note, one.why);
    if (one.note != fault_note)
      late_until_ns_.store(now_ns() + silence_ns(one.why.timeout_ns), std::memory_order_relaxed);
  }
}

}  // namespace velo::comm
