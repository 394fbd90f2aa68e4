// Shared by tests of schedules: schedules made in one line, rows as people write them, times.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/failure.hpp"
#include "sched/check/check.hpp"
#include "sched/pipeline/generate.hpp"
#include "sched/pipeline/kinds.hpp"
#include "sched/schedule/kind_name.hpp"
#include "sched/simulate/timeline.hpp"
#include "tests/core/fails.hpp"
#include "tests/structs.hpp"
#include "velo/timeline.h"

namespace velo::testing {

using sizes = schedule_sizes;

// The owner of a schedule's handle.
class live_schedule {
 public:
  explicit live_schedule(velo_schedule_kind kind = VELO_SCHEDULE_CUSTOM, const sizes& of = {}) {
    const velo_schedule_desc desc = desc_of(kind, of);
    REQUIRE(velo_schedule_create(&desc, &handle_) == VELO_OK);
  }
  explicit live_schedule(const std::string& rows) : live_schedule() {
    REQUIRE(read(rows) == VELO_OK);
  }
  ~live_schedule() { velo_schedule_destroy(handle_); }
  live_schedule(const live_schedule&) = delete;
  live_schedule& operator=(const live_schedule&) = delete;
  operator velo_schedule() const { return handle_; }

  velo_status read(const std::string& rows) const {
    return velo_schedule_read(handle_, VELO_SCHEDULE_CSV, rows.data(), rows.size());
  }
  velo_schedule release() { return std::exchange(handle_, nullptr); }

 private:
  velo_schedule handle_ = nullptr;
};

inline sched::schedule generate(const velo_schedule_desc& desc, const sched::costs& costs = {}) {
  return sched::generate(sched::read_request(desc, costs));
}

inline sched::schedule made(velo_schedule_kind kind, const sizes& of,
                            const sched::costs& costs = {}) {
  return generate(desc_of(kind, of), costs);
}

// The argument for which a kind is refused.
inline std::string refused(velo_schedule_kind kind, const sizes& of) {
  return failure_of([&] { made(kind, of); }).argument;
}

// A row as "0F0 0F1 (0F2;3B0)": an FB without its name.
inline std::string row_of(const sched::schedule& from, std::int32_t rank) {
  std::string all;
  for (sched::row_reader row(from, rank); !row.done(); row.pass()) {
    std::string one = sched::text_of(row.next());
    if (one[0] == '(') one.erase(one.find(')') + 1);
    all += (all.empty() ? "" : " ") + one;
  }
  return all;
}

// The numbers that published tables give.
struct priced {
  double makespan, peak, sigma, work;
};

inline sched::timeline timed(const sched::schedule& from, const sched::costs& given = {}) {
  return sched::simulate(std::make_shared<const sched::schedule>(from), given);
}

inline priced price(const sched::schedule& from, const sched::costs& given = {}) {
  const sched::timeline times = timed(from, given);
  priced out{};
  out.makespan = times.in_units(times.times.makespan());
  out.sigma = times.in_units(times.times.sigma());
  out.work = times.in_units(times.times.work());
  for (const sched::rank_times& rank : times.times.ranks)
    out.peak = std::max(out.peak, times.in_microbatches(rank.peak));
  return out;
}

inline std::string violations_of(const sched::schedule& pipeline) {
  std::string all;
  for (const sched::violation& v : sched::check(pipeline)) all += v.reason + "\n";
  return all;
}

// The sizes that a kind's row allows with so many ranks and micro-batches: up to 4 chunks and 4
// splits, without flags and with each of its flags.
inline std::vector<sizes> sizes_of(const sched::kind_row& kind, std::int32_t ranks,
                                   std::int32_t microbatches) {
  std::vector<sizes> all;
  for (std::int32_t chunks = kind.one_size() ? 0 : 1; chunks <= (kind.one_size() ? 0 : 4); ++chunks)
    for (std::int32_t splits = 1; splits <= (kind.has(sched::takes_splits) ? 4 : 1); ++splits)
      for (std::uint32_t flag = 0; flag <= kind.flags; flag = flag == 0 ? 1 : 2 * flag)
        if ((flag & kind.flags) == flag)
          all.push_back({ranks, microbatches, chunks, 0, flag, splits == 1 ? 0 : splits});
  return all;
}

// Calls body(schedule) or body(kind, sizes, schedule), which may fail without naming them, for
// every size for which a kind has a schedule, up to `most` ranks, 3 P micro-batches, 4 chunks.
// Ranks and micro-batches that a kind refuses are passed over: every_kind_test.cpp counts what is
// made of each kind. AUTO is a search: auto_test.cpp has it.
template <class Body>
void for_each_schedule(std::int32_t most, Body&& body) {
  for (velo_schedule_kind kind = VELO_SCHEDULE_GPIPE; kind <= sched::last_schedule_kind; ++kind) {
    if (kind == VELO_SCHEDULE_AUTO) continue;
    for (std::int32_t ranks = 1; ranks <= most; ++ranks) {
      for (std::int32_t microbatches = 1; microbatches <= 3 * ranks; ++microbatches) {
        for (const sizes& of : sizes_of(sched::row_of(kind), ranks, microbatches)) {
          INFO(sched::name_of(kind) << ", " << of.ranks << " ranks, " << of.microbatches
                                    << " micro-batches, chunks " << of.chunks);
          try {
            if constexpr (std::is_invocable_v<Body, sched::schedule>)
              body(made(kind, of));
            else
              body(kind, of, made(kind, of));
          } catch (const core::failure& refused) {
            const std::string argument = refused.argument;
            if (argument != "desc.ranks" && argument != "desc.microbatches") throw;
          }
        }
      }
    }
  }
}

}  // namespace velo::testing
