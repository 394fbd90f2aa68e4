// Expert plans: on which ranks each expert lies, so that ranks have equal work.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/expert_plan.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_expert_plan {
  static void call(velo_expert_plan plan) noexcept { VELO_FN(expert_plan_destroy)(plan); }
};
}  // namespace detail

// Owns an expert plan.
class expert_plan : public detail::owner<velo_expert_plan, detail::destroy_expert_plan> {
 public:
  // desc: initialized with VELO_EXPERT_PLAN_DESC_INIT.
  static outcome<expert_plan> create(const velo_expert_plan_desc& desc) {
    velo_expert_plan handle = nullptr;
    const velo_status status = VELO_FN(expert_plan_create)(&desc, &handle);
    expert_plan made;
    made.reset(handle);
    return detail::finish<expert_plan>(status, std::move(made));
  }

  operator velo_expert_plan() const noexcept { return get(); }

  outcome<velo_expert_plan_info> info() const {
    velo_expert_plan_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(expert_plan_get_info)(get(), &info);
    return detail::finish<velo_expert_plan_info>(status, info);
  }

  // Fills `experts`, with room for `capacity`, with those of a rank; returns how many it has.
  outcome<int64_t> experts(int64_t rank, int64_t* experts, int64_t capacity) const {
    int64_t count = 0;
    const velo_status status =
        VELO_FN(expert_plan_get_experts)(get(), rank, experts, capacity, &count);
    return detail::finish<int64_t>(status, count);
  }

  // Fills `ranks`, with room for `capacity`, with those that have an expert; returns how many.
  outcome<int64_t> ranks(int64_t expert, int64_t* ranks, int64_t capacity) const {
    int64_t count = 0;
    const velo_status status =
        VELO_FN(expert_plan_get_ranks)(get(), expert, ranks, capacity, &count);
    return detail::finish<int64_t>(status, count);
  }

  // The plan as a text of the caller's string type.
  template <class String>
  outcome<String> write(velo_expert_plan_format format) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(expert_plan_write)(get(), format, buffer, capacity, needed);
    });
  }
};

static_assert(sizeof(expert_plan) == sizeof(void*));

VELO_CPP_END
