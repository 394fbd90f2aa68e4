// Static plans: addresses for buffers whose lifetimes are known before they are used.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/plan.h"
#include "velo/stream.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_plan {
  static void call(velo_plan plan) noexcept { VELO_FN(plan_destroy)(plan); }
};
}  // namespace detail

// Owns a plan.
class plan : public detail::owner<velo_plan, detail::destroy_plan> {
 public:
  // An empty plan. capacity: a height that is low enough; 0: only the lower bound is. pool:
  // provides the memory of the plan's steps and must outlive it.
  static outcome<plan> create(uint64_t capacity = 0, velo_pool pool = nullptr) {
    velo_plan_desc desc = {};
    desc.struct_size = sizeof desc;
    desc.capacity = capacity;
    desc.pool = pool;
    velo_plan handle = nullptr;
    const velo_status status = VELO_FN(plan_create)(&desc, &handle);
    plan made;
    made.reset(handle);
    return detail::finish<plan>(status, std::move(made));
  }

  operator velo_plan() const noexcept { return get(); }

  // Adds a buffer that is alive in [lower, upper); returns its index.
  outcome<int64_t> add(int64_t lower, int64_t upper, uint64_t bytes) const {
    int64_t index = -1;
    const velo_status status = VELO_FN(plan_add)(get(), lower, upper, bytes, &index);
    return detail::finish<int64_t>(status, index);
  }

  // Adds the buffers listed in a text of `length` bytes.
  outcome<> read(velo_plan_format format, const char* text, uint64_t length) const {
    return detail::check(VELO_FN(plan_read)(get(), format, text, length));
  }

  // Finds an address for every buffer. It searches for at most `seconds` seconds on `threads`
  // threads.
  outcome<> solve(double seconds = 10, uint64_t seed = 1, int32_t threads = 1) const {
    const velo_plan_options options = options_of(seconds, seed, threads);
    return detail::check(VELO_FN(plan_solve)(get(), &options));
  }

  // A buffer by its index, with its address after solve().
  outcome<velo_plan_buffer> buffer(int64_t index) const {
    velo_plan_buffer found = {};
    found.struct_size = sizeof found;
    const velo_status status = VELO_FN(plan_get_buffer)(get(), index, &found);
    return detail::finish<velo_plan_buffer>(status, found);
  }

  // Height and lower bound.
  outcome<velo_plan_stats> stats() const {
    velo_plan_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(plan_get_stats)(get(), &stats);
    return detail::finish<velo_plan_stats>(status, stats);
  }

  // A solved plan as a text of the caller's string type: write<std::string>(VELO_PLAN_SVG).
  template <class String>
  outcome<String> write(velo_plan_format format) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(plan_write)(get(), format, buffer, capacity, needed);
    });
  }

  // add_use: a use of a buffer. add_work: computing that ends at `time` and needs the buffers used
  // since the previous computing.
  outcome<> add_use(int64_t index, int64_t time, velo_access access) const {
    return detail::check(VELO_FN(plan_add_use)(get(), index, time, access));
  }
  outcome<> add_work(int64_t time, double seconds) const {
    return detail::check(VELO_FN(plan_add_work)(get(), time, seconds));
  }
  // A use by its index, in the order of adding.
  outcome<velo_plan_use_info> use_info(int64_t index) const {
    velo_plan_use_info found = {};
    found.struct_size = sizeof found;
    const velo_status status = VELO_FN(plan_get_use)(get(), index, &found);
    return detail::finish<velo_plan_use_info>(status, found);
  }

  // Plans when each buffer is swapped out and in, so that the step fits options.budget.
  outcome<> solve_swaps(const velo_swap_options& options) const {
    return detail::check(VELO_FN(plan_solve_swaps)(get(), &options));
  }
  outcome<velo_plan_swap_stats> swap_stats() const {
    velo_plan_swap_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(plan_get_swap_stats)(get(), &stats);
    return detail::finish<velo_plan_swap_stats>(status, stats);
  }
  // A transfer by its index, in the order of their beginnings.
  outcome<velo_plan_swap> swap(int64_t index) const {
    velo_plan_swap found = {};
    found.struct_size = sizeof found;
    const velo_status status = VELO_FN(plan_get_swap)(get(), index, &found);
    return detail::finish<velo_plan_swap>(status, found);
  }

  // Finds an address in one arena for every stay of a buffer between its transfers.
  outcome<> place_swaps(double seconds = 10, uint64_t seed = 1, int32_t threads = 1) const {
    const velo_plan_options options = options_of(seconds, seed, threads);
    return detail::check(VELO_FN(plan_place_swaps)(get(), &options));
  }
  // A stay by its index, in the order of their beginnings.
  outcome<velo_plan_stay> stay(int64_t index) const {
    velo_plan_stay found = {};
    found.struct_size = sizeof found;
    const velo_status status = VELO_FN(plan_get_stay)(get(), index, &found);
    return detail::finish<velo_plan_stay>(status, found);
  }

  // Begins a step of a plan with a pool. Allocations until its end are recorded or replayed.
  outcome<> begin(velo_plan_mode mode) const {
    return detail::check(VELO_FN(plan_begin)(get(), mode));
  }
  outcome<> end() const { return detail::check(VELO_FN(plan_end)(get())); }
  // The result of the step that has begun last.
  outcome<velo_plan_step> step() const {
    velo_plan_step step = {};
    step.struct_size = sizeof step;
    const velo_status status = VELO_FN(plan_get_step)(get(), &step);
    return detail::finish<velo_plan_step>(status, step);
  }

  // Allocates a block as requested; free() frees it.
  outcome<void*> allocate(const velo_pool_request& request) const {
    void* memory = nullptr;
    const velo_status status = VELO_FN(plan_allocate)(get(), &request, &memory);
    return detail::finish<void*>(status, memory);
  }
  outcome<void*> allocate(uint64_t bytes, stream_ref stream = {}) const {
    velo_pool_request request = {};
    request.struct_size = sizeof request;
    request.bytes = bytes;
    request.stream = stream.get();
    return allocate(request);
  }
  outcome<> free(void* memory, uint64_t bytes, stream_ref stream = {}) const {
    return detail::check(VELO_FN(plan_free)(get(), memory, bytes, stream.get()));
  }
  // use: the block at `memory` is used now. work: computing that took `seconds` ends now.
  outcome<> use(const void* memory, velo_access access) const {
    return detail::check(VELO_FN(plan_use)(get(), memory, access));
  }
  outcome<> work(double seconds) const { return detail::check(VELO_FN(plan_work)(get(), seconds)); }

  // An allocator for a context that allocates through the plan.
  outcome<velo_allocator> allocator() const {
    velo_allocator made = {};
    made.struct_size = sizeof made;
    const velo_status status = VELO_FN(plan_allocator)(get(), &made);
    return detail::finish<velo_allocator>(status, made);
  }

 private:
  static velo_plan_options options_of(double seconds, uint64_t seed, int32_t threads) {
    velo_plan_options options = {};
    options.struct_size = sizeof options;
    options.threads = threads;
    options.seconds = seconds;
    options.seed = seed;
    return options;
  }
};

static_assert(sizeof(plan) == sizeof(void*));

VELO_CPP_END
