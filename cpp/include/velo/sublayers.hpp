// Plans of sublayers: the order of a layer's parts, in which messages travel while something else
// is computed.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/sublayers.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_sublayers {
  static void call(velo_sublayers plan) noexcept { VELO_FN(sublayers_destroy)(plan); }
};
}  // namespace detail

// Owns a plan of sublayers.
class sublayers : public detail::owner<velo_sublayers, detail::destroy_sublayers> {
 public:
  // desc: initialized with VELO_SUBLAYERS_DESC_INIT.
  static outcome<sublayers> create(const velo_sublayers_desc& desc) {
    velo_sublayers handle = nullptr;
    const velo_status status = VELO_FN(sublayers_create)(&desc, &handle);
    sublayers made;
    made.reset(handle);
    return detail::finish<sublayers>(status, std::move(made));
  }

  operator velo_sublayers() const noexcept { return get(); }

  outcome<velo_sublayers_info> info() const {
    velo_sublayers_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(sublayers_get_info)(get(), &info);
    return detail::finish<velo_sublayers_info>(status, info);
  }

  // Fills `steps`, with room for `capacity`; returns how many steps there are.
  outcome<int64_t> steps(velo_sublayer_step* steps, int64_t capacity) const {
    int64_t count = 0;
    const velo_status status = VELO_FN(sublayers_get_steps)(get(), steps, capacity, &count);
    return detail::finish<int64_t>(status, count);
  }

  // Fills `needs`, with room for `capacity`, with the indices of the steps that a step needs;
  // returns how many.
  outcome<int64_t> needs(int64_t step, int64_t* needs, int64_t capacity) const {
    int64_t count = 0;
    const velo_status status = VELO_FN(sublayers_get_needs)(get(), step, needs, capacity, &count);
    return detail::finish<int64_t>(status, count);
  }

  // The plan as a text of the caller's string type; spans: of a run, or nullptr.
  template <class String>
  outcome<String> write(velo_sublayers_format format,
                        const velo_sublayer_span* spans = nullptr) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(sublayers_write)(get(), spans, format, buffer, capacity, needed);
    });
  }

  // desc: initialized with VELO_SUBLAYERS_RUN_DESC_INIT.
  outcome<> run(velo_stream compute, velo_stream messages,
                const velo_sublayers_run_desc& desc) const {
    return detail::check(VELO_FN(sublayers_run)(compute, messages, get(), &desc));
  }
};

static_assert(sizeof(sublayers) == sizeof(void*));

VELO_CPP_END
