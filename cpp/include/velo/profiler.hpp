// Profiles: when the work of a context began and ended, as a trace and as data.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/profiler.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_profiler {
  static void call(velo_profiler profiler) noexcept { VELO_FN(profiler_destroy)(profiler); }
};
}  // namespace detail

// Owns a profiler, which records from its creation to stop().
class profiler : public detail::owner<velo_profiler, detail::destroy_profiler> {
 public:
  // desc: initialized with VELO_PROFILER_DESC_INIT.
  static outcome<profiler> create(velo_context context, const velo_profiler_desc& desc) {
    velo_profiler handle = nullptr;
    const velo_status status = VELO_FN(profiler_create)(context, &desc, &handle);
    profiler made;
    made.reset(handle);
    return detail::finish<profiler>(status, std::move(made));
  }

  operator velo_profiler() const noexcept { return get(); }

  // Ranges of the calling thread, one inside the other.
  outcome<> begin(const char* text) const {
    return detail::check(VELO_FN(profiler_begin)(get(), text));
  }
  outcome<> end() const { return detail::check(VELO_FN(profiler_end)(get())); }

  outcome<> stop() const { return detail::check(VELO_FN(profiler_stop)(get())); }

  outcome<velo_profiler_stats> stats() const {
    velo_profiler_stats stats = VELO_PROFILER_STATS_INIT;
    const velo_status status = VELO_FN(profiler_get_stats)(get(), &stats);
    return detail::finish<velo_profiler_stats>(status, stats);
  }

  // An event by its index below stats().events; its texts are the profiler's.
  outcome<velo_profiler_event> event(int64_t index) const {
    velo_profiler_event event = VELO_PROFILER_EVENT_INIT;
    const velo_status status = VELO_FN(profiler_get_event)(get(), index, &event);
    return detail::finish<velo_profiler_event>(status, event);
  }

  // The profile as a text of the caller's string type.
  template <class String>
  outcome<String> write(velo_profiler_format format) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(profiler_write)(get(), format, buffer, capacity, needed);
    });
  }

  outcome<> save(const char* path) const {
    return detail::check(VELO_FN(profiler_save)(get(), path));
  }
};

static_assert(sizeof(profiler) == sizeof(void*));

VELO_CPP_END
