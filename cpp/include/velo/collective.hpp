// Planned collectives: described once and started many times.
#pragma once

#include <utility>

#include "velo/collective.h"
#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/stream.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_collective {
  static void call(velo_collective one) noexcept { VELO_FN(collective_destroy)(one); }
};
}  // namespace detail

// Owns a planned collective of one rank of a group.
class collective : public detail::owner<velo_collective, detail::destroy_collective> {
 public:
  static outcome<collective> create(velo_group group, const velo_collective_desc& desc) {
    velo_collective handle = nullptr;
    const velo_status status = VELO_FN(collective_create)(group, &desc, &handle);
    collective made;
    made.reset(handle);
    return detail::finish<collective>(status, std::move(made));
  }

  operator velo_collective() const noexcept { return get(); }

  // Starts the collective. It reads its tensors' memory when it runs.
  outcome<> start(stream_ref stream) const {
    return detail::check(VELO_FN(collective_start)(stream.get(), get()));
  }

  // The chosen algorithm, the reason, and the predicted time, as JSON in any string.
  template <class String>
  outcome<String> explain() const {
    return detail::text<String>([this](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(collective_explain)(get(), buffer, capacity, needed);
    });
  }

  // The planned collective as JSON in any string: describe<std::string>().
  template <class String>
  outcome<String> describe() const {
    return detail::text<String>([this](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(collective_describe)(get(), buffer, capacity, needed);
    });
  }
};

static_assert(sizeof(collective) == sizeof(void*));

VELO_CPP_END
