// The plan behind velo_recompute_plan: the operations, and the steps once they are found.
//
// Adding an operation forgets the steps, so that they always match the operations. A call that
// fails leaves the plan as it was. Not thread-safe.
#pragma once

#include <cstdint>

#include "core/handle/handle_kinds.hpp"
#include "memory/recompute/solve.hpp"
#include "velo/recompute_plan.h"

namespace velo::memory {

class recompute_plan {
 public:
  std::int64_t add(const velo_recompute_op& op);  // its struct checked; throws ARGUMENT
  void solve(std::int64_t budget, std::uint64_t seed);
  void fill(std::int64_t index, velo_recompute_step& step) const;
  void fill(velo_recompute_plan_stats& stats) const;

 private:
  [[noreturn]] void refuse(std::int64_t budget, std::uint64_t seed) const;

  op_graph graph_;
  std::int64_t bytes_ = 0;  // sum of all outputs and workspaces
  op_schedule schedule_;
  bool is_solved_ = false;
};

}  // namespace velo::memory

template <>
struct velo::core::handle_traits<velo::memory::recompute_plan> {
  using handle = velo_recompute_plan;
  static constexpr handle_kind& kind = kinds::recompute_plan;
};
