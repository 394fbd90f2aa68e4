// Entries of velo/expert_plan.h.
#include "velo/expert_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/index.hpp"
#include "sched/moe/planned_experts.hpp"

using namespace velo;
using core::concat;
using core::fail;
using core::number;
using sched::planned_experts;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 56;
constexpr std::uint32_t info_size = 72;
static_assert(sizeof(velo_expert_plan_desc) >= desc_size &&
              sizeof(velo_expert_plan_info) >= info_size);

const planned_experts& plan_of(velo_expert_plan handle) {
  return core::use<planned_experts>(handle, "plan");
}

void require_below(const char* argument, std::int64_t value, std::int64_t count) {
  if (value < 0 || value >= count)
    fail(VELO_ERR_ARGUMENT, argument, concat("0 to ", count - 1), number(value));
}

void write_list(const std::vector<int>& from, const char* argument, const char* things,
                std::int64_t* to, std::int64_t capacity, std::int64_t* count) {
  capi::require_room(to, capacity, argument, things);
  const auto found = static_cast<std::int64_t>(from.size());
  for (std::int64_t i = 0; i < std::min(found, capacity); ++i) to[i] = from[core::at(i)];
  if (count != nullptr) *count = found;
}

}  // namespace

extern "C" {

velo_status velo_expert_plan_create(const velo_expert_plan_desc* desc, velo_expert_plan* plan) {
  return core::guard("velo_expert_plan_create", [&] {
    const velo_expert_plan_desc defaults = VELO_EXPERT_PLAN_DESC_INIT;
    const velo_expert_plan_desc given = capi::read_struct(desc, desc_size, "desc", defaults);
    capi::required(plan, "plan");
    *plan = core::handle_of(core::make_object<planned_experts>(nullptr, given));
  });
}

void velo_expert_plan_destroy(velo_expert_plan plan) {
  capi::destroy<planned_experts>("velo_expert_plan_destroy", plan, "plan");
}

velo_status velo_expert_plan_get_info(velo_expert_plan plan, velo_expert_plan_info* info) {
  return core::guard("velo_expert_plan_get_info", [&] {
    velo_expert_plan_info found{};
    plan_of(plan).describe(found);
    capi::write_struct(info, info_size, "info", found);
  });
}

velo_status velo_expert_plan_get_experts(velo_expert_plan plan, int64_t rank, int64_t* experts,
                                         int64_t capacity, int64_t* count) {
  return core::guard("velo_expert_plan_get_experts", [&] {
    const planned_experts& of = plan_of(plan);
    require_below("rank", rank, of.ranks());
    write_list(of.experts_of(rank), "experts", "experts", experts, capacity, count);
  });
}

velo_status velo_expert_plan_get_ranks(velo_expert_plan plan, int64_t expert, int64_t* ranks,
                                       int64_t capacity, int64_t* count) {
  return core::guard("velo_expert_plan_get_ranks", [&] {
    const planned_experts& of = plan_of(plan);
    require_below("expert", expert, of.experts());
    write_list(of.ranks_of(expert), "ranks", "ranks", ranks, capacity, count);
  });
}

velo_status velo_expert_plan_write(velo_expert_plan plan, velo_expert_plan_format format,
                                   char* buffer, uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_expert_plan_write", [&] {
    const planned_experts& of = plan_of(plan);
    if (format != VELO_EXPERT_PLAN_JSON && format != VELO_EXPERT_PLAN_SVG)
      fail(VELO_ERR_ARGUMENT, "format", "VELO_EXPERT_PLAN_JSON or VELO_EXPERT_PLAN_SVG",
           number(format));
    const std::string text = format == VELO_EXPERT_PLAN_JSON ? of.json() : of.picture();
    capi::write_text(text.c_str(), buffer, capacity, needed);
  });
}
}
