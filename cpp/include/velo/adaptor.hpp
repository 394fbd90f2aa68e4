// Adaptors: allocators that wrap another allocator, to limit, count or trace its allocations.
#pragma once

#include "velo/adaptor.h"
#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_adaptor {
  static void call(velo_adaptor adaptor) noexcept { VELO_FN(adaptor_destroy)(adaptor); }
};
}  // namespace detail

// Owns an adaptor, which must outlive everything allocated through it.
class adaptor : public detail::owner<velo_adaptor, detail::destroy_adaptor> {
 public:
  static outcome<adaptor> create(const velo_adaptor_desc& desc) {
    velo_adaptor handle = nullptr;
    const velo_status status = VELO_FN(adaptor_create)(&desc, &handle);
    adaptor made;
    made.reset(handle);
    return detail::finish<adaptor>(status, std::move(made));
  }

  operator velo_adaptor() const noexcept { return get(); }

  // The allocator struct that velo_context_desc and the next adaptor take.
  outcome<velo_allocator> allocator() const {
    velo_allocator made = {};
    made.struct_size = sizeof made;
    const velo_status status = VELO_FN(adaptor_allocator)(get(), &made);
    return detail::finish<velo_allocator>(status, made);
  }

  // The counters of a limit or statistics adaptor.
  outcome<velo_adaptor_stats> stats() const {
    velo_adaptor_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(adaptor_get_stats)(get(), &stats);
    return detail::finish<velo_adaptor_stats>(status, stats);
  }

  // Writes the buffered part of a trace.
  outcome<> flush() const { return detail::check(VELO_FN(adaptor_flush)(get())); }
};

static_assert(sizeof(adaptor) == sizeof(void*));

VELO_CPP_END
