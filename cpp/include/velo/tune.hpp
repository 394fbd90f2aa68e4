// Searches for the best layout of a job.
#pragma once

#include <utility>

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/tune.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_tuning {
  static void call(velo_tuning tuning) noexcept { VELO_FN(tuning_destroy)(tuning); }
};
}  // namespace detail

// Owns the result of a search.
class tuning : public detail::owner<velo_tuning, detail::destroy_tuning> {
 public:
  // Searches. It sets desc.struct_size.
  static outcome<tuning> search(velo_tune_desc desc) {
    desc.struct_size = sizeof desc;
    velo_tuning handle = nullptr;
    const velo_status status = VELO_FN(tune)(&desc, &handle);
    tuning found;
    found.reset(handle);
    return detail::finish<tuning>(status, std::move(found));
  }

  operator velo_tuning() const noexcept { return get(); }

  // The numbers of plans and rejections, and the nearest rejection.
  outcome<velo_tuning_info> info() const {
    velo_tuning_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(tuning_get_info)(get(), &info);
    return detail::finish<velo_tuning_info>(status, info);
  }

  // plan: a plan by its index, the fastest first. memory: that of a rank of the plan's pipeline.
  outcome<velo_tuning_plan> plan(int64_t index) const {
    velo_tuning_plan plan = {};
    plan.struct_size = sizeof plan;
    const velo_status status = VELO_FN(tuning_get_plan)(get(), index, &plan);
    return detail::finish<velo_tuning_plan>(status, plan);
  }
  outcome<velo_tuning_memory> memory(int64_t index, int32_t rank) const {
    velo_tuning_memory memory = {};
    memory.struct_size = sizeof memory;
    const velo_status status = VELO_FN(tuning_get_memory)(get(), index, rank, &memory);
    return detail::finish<velo_tuning_memory>(status, memory);
  }

  // A rejected candidate, with the reason.
  outcome<velo_tuning_rejection> rejection(int64_t index) const {
    velo_tuning_rejection rejection = {};
    rejection.struct_size = sizeof rejection;
    const velo_status status = VELO_FN(tuning_get_rejection)(get(), index, &rejection);
    return detail::finish<velo_tuning_rejection>(status, rejection);
  }

  // A text of the caller's string type: write<std::string>(VELO_TUNING_SUMMARY).
  template <class String>
  outcome<String> write(velo_tuning_format format) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(tuning_write)(get(), format, buffer, capacity, needed);
    });
  }
};

static_assert(sizeof(tuning) == sizeof(void*));

VELO_CPP_END
