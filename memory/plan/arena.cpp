// Granules change in runs: one system call for each run, none if nothing changes.
#include "memory/plan/arena.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "core/round_up.hpp"

namespace velo::memory {

using core::fail;
using core::text;

plan_arena::plan_arena(velo_pool_kind kind, std::uint64_t bytes) : range_(kind, bytes) {
  if (range_.size() < bytes)
    fail(VELO_ERR_MEMORY, "plan", core::concat(bytes, " bytes of addresses"),
         core::number(range_.size()));
  whole_ = core::round_up(bytes, range_.granule());
  backed_.resize(core::ceil_div(whole_ / range_.granule(), 64));
}

bool plan_arena::take(std::uint64_t offset, std::uint64_t bytes, std::uint64_t requested,
                      std::uint64_t alignment) {
  const std::uint64_t end = offset + bytes;
  const auto above = live_.lower_bound(offset);
  if (above != live_.end() && above->first < end) return false;
  if (above != live_.begin() && std::prev(above)->second.end > offset) return false;
  const auto base = reinterpret_cast<std::uintptr_t>(range_.begin());
  const std::uint64_t shown = core::round_up(base + offset, alignment) - base;
  live_.emplace_hint(above, offset, block{end, shown, requested, false});
  requested_ += requested;
  return true;
}

std::uint64_t plan_arena::missing(std::uint64_t offset) const noexcept {
  if (reserved_ == whole_) return 0;
  const run of = granules(offset, live_.find(offset)->second.end);
  return (of.last - of.first - count(of)) * range_.granule();
}

char* plan_arena::back(std::uint64_t offset) noexcept {
  const block& b = live_.find(offset)->second;
  if (reserved_ < whole_ && !change(granules(offset, b.end), true)) return nullptr;
  return range_.begin() + b.shown;
}

std::uint64_t plan_arena::find(const void* memory) const {
  const auto at = static_cast<std::uint64_t>(static_cast<const char*>(memory) - range_.begin());
  const auto above = live_.upper_bound(at);
  const auto found = above == live_.begin() ? live_.end() : std::prev(above);
  if (found != live_.end() && found->second.shown == at && !found->second.pending)
    return found->first;
  fail(VELO_ERR_ARGUMENT, "memory", "a block of this plan that is in use",
       core::concat("byte ", at, " of its addresses, where none begins"));
}

void plan_arena::give(std::uint64_t offset) noexcept {
  const auto found = live_.find(offset);
  requested_ -= found->second.requested;
  live_.erase(found);
}

// The first granule of the run that is not in `state`, or the run's end.
std::uint64_t plan_arena::skip(run of, bool state) const noexcept {
  for (std::uint64_t x = of.first; x < of.last;) {
    const std::uint64_t other = (state ? ~backed_[x / 64] : backed_[x / 64]) >> (x % 64);
    if (other != 0) return std::min(x + __builtin_ctzll(other), of.last);
    x = (x / 64 + 1) * 64;
  }
  return of.last;
}

// How many granules of the run have memory.
std::uint64_t plan_arena::count(run of) const noexcept {
  std::uint64_t sum = 0;
  for (std::uint64_t x = of.first; x < of.last;) {
    const std::uint64_t end = std::min((x / 64 + 1) * 64, of.last);
    const std::uint64_t word = backed_[x / 64] >> (x % 64);
    sum += __builtin_popcountll(end - x < 64 ? word & ((std::uint64_t{1} << (end - x)) - 1) : word);
    x = end;
  }
  return sum;
}

// Backs, or releases, those granules of a run that are in the other state. Returns false if the
// system refuses; earlier changes then stay.
bool plan_arena::change(run of, bool commit) noexcept {
  const std::uint64_t granule = range_.granule();
  for (std::uint64_t x = of.first; (x = skip({x, of.last}, commit)) < of.last;) {
    const std::uint64_t end = skip({x, of.last}, !commit);
    const std::uint64_t start = x * granule, bytes = (end - x) * granule;
    if (!(commit ? range_.commit(start, bytes) : range_.decommit(start, bytes))) return false;
    for (; x < end; ++x) backed_[x / 64] ^= std::uint64_t{1} << (x % 64);
    reserved_ += commit ? bytes : -bytes;
  }
  return true;
}

// The gap whose whole granules have the most memory.
plan_arena::run plan_arena::widest_gap() const noexcept {
  const std::uint64_t granule = range_.granule();
  run widest;
  std::uint64_t most = 0, end = 0;
  const auto consider = [&](std::uint64_t until) {
    const run gap = {core::ceil_div(end, granule), until / granule};
    if (gap.last <= gap.first + most) return;
    const std::uint64_t held = count(gap);
    if (held <= most) return;
    most = held;
    widest = gap;
  };
  for (const auto& [begin, b] : live_) {
    consider(begin);
    end = b.end;
  }
  consider(whole_);
  return widest;
}

std::uint64_t plan_arena::trim(std::uint64_t bytes) noexcept {
  const std::uint64_t before = reserved_;
  while (before - reserved_ < bytes) {
    const run gap = widest_gap();
    if (gap.first == gap.last) break;
    const std::uint64_t left = bytes - (before - reserved_);
    const std::uint64_t wanted = (left + range_.granule() - 1) / range_.granule();
    const run top = {gap.last - std::min(wanted, gap.last - gap.first), gap.last};
    if (!change(count(top) < wanted ? gap : top, false)) break;
  }
  return before - reserved_;
}

}  // namespace velo::memory
