// The measured timeline of a run, with the times of all ranks on every rank.
//
// Rank 0 receives the rows of all ranks and sends the whole to every rank. A rank that has not
// recorded reports that, and then the call fails on all ranks.
#include <algorithm>
#include <utility>

#include "sched/executor/executor.hpp"

#include "core/index.hpp"

namespace velo::sched {

using core::fail;
using core::text;

namespace {

// Makes a timeline of measured spans; its time 0 is the begin of the first span.
timeline timeline_of(std::shared_ptr<const schedule> of, spans all) {
  std::int64_t origin = INT64_MAX;
  for (const auto& row : all)
    for (const span& one : row) origin = std::min(origin, one.begin);
  simulation times;
  holdings held(*of, times.scale);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    rank_times mine;
    std::size_t index = 0;
    bool began = false;
    for (row_reader row(*of, static_cast<std::int32_t>(rank)); !row.done(); row.pass(), ++index) {
      span& when = all[rank][index];
      when = {when.begin - origin, when.end - origin};
      held.add(static_cast<std::int32_t>(rank), row.next(), when);
      if (!computes(row.next().kind)) continue;
      if (!std::exchange(began, true)) mine.first = when.begin;
      mine.last = std::max(mine.last, when.end);
      mine.work += when.end - when.begin;
    }
    held.finish(static_cast<std::int32_t>(rank));
    mine.peak = held.of(static_cast<std::int32_t>(rank)).peak;
    mine.host_peak = held.of(static_cast<std::int32_t>(rank)).host_peak;
    times.ranks.push_back(mine);
  }
  return {std::move(of), std::move(times), std::make_shared<const spans>(std::move(all))};
}

}  // namespace

timeline executor::gather() {
  require_idle();
  if (failed_) fail(VELO_ERR_STATE, "executor", "one that has not failed", "one that has");
  const std::int32_t ranks = shape_.ranks;
  spans all(static_cast<std::size_t>(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    all[core::at(rank)].resize(static_cast<std::size_t>(schedule_->length(rank)));
  std::int64_t missing = recorded_ ? -1 : desc_.rank;  // the last rank that did not record
  if (recorded_) all[core::at(desc_.rank)] = spans_;
  const auto cross = [&](auto&& one, std::int32_t peer, std::vector<span>& row) {
    one(peer, row.data(), row.size() * sizeof(span));
  };
  const auto to = [&](std::int32_t peer, const void* bytes, std::uint64_t size) {
    channel_.send_bytes(peer, bytes, size);
  };
  const auto from = [&](std::int32_t peer, void* bytes, std::uint64_t size) {
    channel_.receive_bytes(peer, bytes, size);
  };
  if (desc_.rank != 0) {
    to(0, &missing, sizeof missing);
    cross(to, 0, all[core::at(desc_.rank)]);
    from(0, &missing, sizeof missing);
    for (std::vector<span>& row : all) cross(from, 0, row);
  } else {
    for (std::int32_t rank = 1; rank < ranks; ++rank) {
      std::int64_t its = -1;
      from(rank, &its, sizeof its);
      missing = std::max(missing, its);
      cross(from, rank, all[core::at(rank)]);
    }
    for (std::int32_t rank = 1; rank < ranks; ++rank) {
      to(rank, &missing, sizeof missing);
      for (std::vector<span>& row : all) cross(to, rank, row);
    }
  }
  if (missing >= 0)
    fail(VELO_ERR_STATE, "executor", "a run that all ranks recorded",
         core::concat("none of rank ", missing));
  return timeline_of(schedule_, std::move(all));
}

}  // namespace velo::sched
