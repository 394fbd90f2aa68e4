// The memory plan behind velo_plan: buffers with their uses, their addresses once they are placed,
// and the steps from which buffers are recorded and in which addresses are used (steps.hpp).
//
// Adding a buffer forgets the addresses, so that they always match the buffers. A call that fails
// leaves the plan as it was. Not thread-safe, except steps().
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "core/handle/handle_kinds.hpp"
#include "memory/plan/csv.hpp"
#include "memory/plan/solver/placement.hpp"
#include "memory/plan/steps.hpp"
#include "memory/swap/plan/swap_schedule.hpp"
#include "memory/swap/plan/uses.hpp"
#include "velo/plan.h"

namespace velo::memory {

class plan {
 public:
  // pool: of the steps; nullptr: it has none.
  plan(std::int64_t capacity, velo_pool pool) : capacity_(capacity) {
    if (pool != nullptr) steps_ = std::make_unique<plan_steps>(pool);
  }

  std::int64_t add(std::int64_t lower, std::int64_t upper, std::int64_t size);
  void read(velo_plan_format format, std::string_view text);
  void add_use(std::int64_t index, std::int64_t time, velo_access access);
  void add_work(std::int64_t time, double seconds);
  void solve(plan_limits limits);                             // the capacity is the plan's
  void solve_swaps(const velo_swap_options& options);         // checked
  void place_swaps(plan_limits limits);                       // the capacity is the swaps' budget
  std::shared_ptr<const swap_schedule> placed_swaps() const;  // throws STATE
  void fill(std::int64_t index, velo_plan_stay& stay) const;
  void fill(std::int64_t index, velo_plan_swap& swap) const;
  void fill(velo_plan_swap_stats& stats) const;
  void begin(velo_plan_mode mode);
  void end();
  plan_steps& steps() const;  // throws STATE
  void fill(std::int64_t index, velo_plan_buffer& buffer) const;
  void fill(std::int64_t index, velo_plan_use_info& use) const;
  void fill(velo_plan_stats& stats) const;
  std::string write(velo_plan_format format) const;

  // The most bytes of a buffer.
  std::int64_t most() const {
    return capacity_ != 0 ? capacity_ : std::numeric_limits<std::int64_t>::max();
  }
  // The sum of all sizes.
  std::int64_t bytes() const { return bytes_; }

 private:
  void require_buffer(std::int64_t index) const;
  void require_no_step() const;
  void forget() noexcept;

  std::int64_t capacity_;
  std::int64_t bytes_ = 0;
  plan_table table_;
  plan_uses uses_;
  std::shared_ptr<const swap_schedule> swaps_;  // or nullptr; a step may hold it longer
  velo_swap_options swaps_for_{};
  std::unique_ptr<plan_steps> steps_;
  placement placed_;
  bool solved_ = false;
};

}  // namespace velo::memory

template <>
struct velo::core::handle_traits<velo::memory::plan> {
  using handle = velo_plan;
  static constexpr handle_kind& kind = kinds::plan;
};
