// The object behind velo_expert_plan: places of experts, and the rows that they were chosen for.
//
// The constructor checks the description and makes the plan. Invariant: nothing changes afterwards,
// so calls may overlap. Cost: the places, by rank and by expert.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/handle/handle_kinds.hpp"
#include "sched/moe/expert_placement.hpp"
#include "velo/expert_plan.h"

namespace velo::sched {

class planned_experts {
 public:
  // Throws ARGUMENT or NULL with the field's name.
  explicit planned_experts(const velo_expert_plan_desc& desc);
  planned_experts(const planned_experts&) = delete;

  std::int64_t ranks() const { return plan_.ranks; }
  std::int64_t experts() const { return static_cast<std::int64_t>(loads_.size()); }
  const std::vector<int>& experts_of(std::int64_t rank) const;
  const std::vector<int>& ranks_of(std::int64_t expert) const;

  void describe(velo_expert_plan_info& to) const;
  std::string json() const;
  std::string picture() const;

 private:
  std::int64_t count_moved() const;

  std::vector<std::int64_t> loads_;
  std::vector<std::vector<int>> current_;  // by rank; empty if the description has none
  expert_places plan_;
  std::vector<std::vector<int>> ranks_of_;
  std::vector<std::int64_t> rows_;  // by rank
};

}  // namespace velo::sched

template <>
struct velo::core::handle_traits<velo::sched::planned_experts> {
  using handle = velo_expert_plan;
  static constexpr handle_kind& kind = kinds::expert_plan;
};
