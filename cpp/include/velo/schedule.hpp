// Pipeline schedules and their timelines.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/schedule.h"
#include "velo/timeline.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_schedule {
  static void call(velo_schedule schedule) noexcept { VELO_FN(schedule_destroy)(schedule); }
};
struct destroy_timeline {
  static void call(velo_timeline timeline) noexcept { VELO_FN(timeline_destroy)(timeline); }
};
}  // namespace detail

// Owns a timeline.
class timeline : public detail::owner<velo_timeline, detail::destroy_timeline> {
 public:
  timeline() noexcept = default;
  explicit timeline(velo_timeline handle) noexcept { reset(handle); }
  operator velo_timeline() const noexcept { return get(); }

  // Makespan, work and bubbles.
  outcome<velo_timeline_stats> stats() const {
    velo_timeline_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(timeline_get_stats)(get(), &stats);
    return detail::finish<velo_timeline_stats>(status, stats);
  }

  // The times of one rank, and the activations that it holds.
  outcome<velo_timeline_rank> rank(int32_t rank) const {
    velo_timeline_rank stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(timeline_get_rank)(get(), rank, &stats);
    return detail::finish<velo_timeline_rank>(status, stats);
  }

  // A rank's memory at its peak.
  outcome<velo_timeline_memory> memory(int32_t rank) const {
    velo_timeline_memory memory = {};
    memory.struct_size = sizeof memory;
    const velo_status status = VELO_FN(timeline_get_memory)(get(), rank, &memory);
    return detail::finish<velo_timeline_memory>(status, memory);
  }

  // The critical path. Returns its number of steps and writes the first `capacity` of them to
  // `steps`.
  outcome<int64_t> path(int64_t capacity, velo_path_step* steps) const {
    int64_t count = 0;
    const velo_status status = VELO_FN(timeline_get_path)(get(), capacity, steps, &count);
    return detail::finish<int64_t>(status, count);
  }

  // A text of the caller's string type: write<std::string>(VELO_TIMELINE_SUMMARY).
  template <class String>
  outcome<String> write(velo_timeline_format format) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(timeline_write)(get(), format, buffer, capacity, needed);
    });
  }
};

// Owns a schedule.
class schedule : public detail::owner<velo_schedule, detail::destroy_schedule> {
 public:
  // A schedule of a given kind. create() sets desc.struct_size.
  static outcome<schedule> create(velo_schedule_desc desc) {
    desc.struct_size = sizeof desc;
    velo_schedule handle = nullptr;
    const velo_status status = VELO_FN(schedule_create)(&desc, &handle);
    schedule made;
    made.reset(handle);
    return detail::finish<schedule>(status, std::move(made));
  }
  static outcome<schedule> create(velo_schedule_kind kind, int32_t ranks, int32_t microbatches) {
    velo_schedule_desc desc = {};
    desc.kind = kind;
    desc.ranks = ranks;
    desc.microbatches = microbatches;
    return create(desc);
  }

  operator velo_schedule() const noexcept { return get(); }

  // Replaces this schedule by the one in a text of `length` bytes.
  outcome<> read(velo_schedule_format format, const char* text, uint64_t length) const {
    return detail::check(VELO_FN(schedule_read)(get(), format, text, length));
  }

  // Ranks, stages, micro-batches, actions.
  outcome<velo_schedule_info> info() const {
    velo_schedule_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(schedule_get_info)(get(), &info);
    return detail::finish<velo_schedule_info>(status, info);
  }

  // The name of a kind: "zbv-greedy".
  static outcome<const char*> kind_name(velo_schedule_kind kind) {
    const char* name = nullptr;
    const velo_status status = VELO_FN(schedule_kind_name)(kind, &name);
    return detail::finish<const char*>(status, name);
  }

  // A stage's rank and contents.
  outcome<velo_stage_info> stage(int32_t stage) const {
    velo_stage_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(schedule_get_stage)(get(), stage, &info);
    return detail::finish<velo_stage_info>(status, info);
  }

  // The number of actions of a rank.
  outcome<int64_t> length(int32_t rank) const {
    int64_t length = 0;
    const velo_status status = VELO_FN(schedule_get_length)(get(), rank, &length);
    return detail::finish<int64_t>(status, length);
  }

  // The action of a rank at an index. actions: several of them, from index `first` on.
  outcome<velo_action> action(int32_t rank, int64_t index) const {
    velo_action found = {};
    const velo_status status = VELO_FN(schedule_get_actions)(get(), rank, index, 1, &found);
    return detail::finish<velo_action>(status, found);
  }
  outcome<> actions(int32_t rank, int64_t first, int64_t count, velo_action* into) const {
    return detail::check(VELO_FN(schedule_get_actions)(get(), rank, first, count, into));
  }

  // A text of the caller's string type: write<std::string>(VELO_SCHEDULE_CSV).
  template <class String>
  outcome<String> write(velo_schedule_format format) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(schedule_write)(get(), format, buffer, capacity, needed);
    });
  }

  // The same schedule with sends and receives, in an order that is safe whether or not sends block.
  outcome<schedule> lower() const {
    velo_schedule handle = nullptr;
    const velo_status status = VELO_FN(schedule_lower)(get(), &handle);
    schedule lowered;
    lowered.reset(handle);
    return detail::finish<schedule>(status, std::move(lowered));
  }

  // check: the number of violations. violation: one of them.
  outcome<int64_t> check() const {
    int64_t violations = 0;
    const velo_status status = VELO_FN(schedule_check)(get(), &violations);
    return detail::finish<int64_t>(status, violations);
  }
  outcome<velo_violation> violation(int64_t index) const {
    velo_violation found = {};
    found.struct_size = sizeof found;
    const velo_status status = VELO_FN(schedule_get_violation)(get(), index, &found);
    return detail::finish<velo_violation>(status, found);
  }

  // Computes when every action begins and ends. simulate() sets costs.struct_size.
  outcome<timeline> simulate(velo_schedule_costs costs = VELO_SCHEDULE_COSTS_INIT) const {
    costs.struct_size = sizeof costs;
    velo_timeline handle = nullptr;
    const velo_status status = VELO_FN(schedule_simulate)(get(), &costs, &handle);
    return detail::finish<timeline>(status, timeline(handle));
  }
};

static_assert(sizeof(schedule) == sizeof(void*));
static_assert(sizeof(timeline) == sizeof(void*));

VELO_CPP_END
