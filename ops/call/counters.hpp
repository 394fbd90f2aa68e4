// The work of a context's calls, counted by operator: MindSpeed's counters of flops (F93).
//
// The key `counters` switches them. `on` counts a call as recorded and as traversed; `recompute`
// counts it as traversed alone, so that the flops recorded are those of the model (MFU) and the
// flops traversed those of the machine (HFU). A call counts when it is accepted, whether it runs at
// once or is queued; its time is added when it has run. Cost: a branch where nothing is counted;
// else 68 ns for an add of 64 elements, which takes 84 ns itself, and two readings of the clock.
#pragma once

#include <mutex>
#include <vector>

#include "ops/call/cost.hpp"

namespace velo::ops {

struct op_counts {
  std::int64_t calls = 0;
  double flops_recorded = 0, flops_traversed = 0, flops_visible = 0;
  double bytes_read = 0, bytes_written = 0;
  double seconds = 0, least_seconds = 0;  // of the calls that were timed
  // Of the calls that check.mode picked: those that agreed with the reference, and those that could
  // not be judged.
  std::int64_t checked = 0, not_judged = 0;

  void add(const op_counts& other);
};

class op_counters {
 public:
  op_counters();
  void count(op_id op, const op_cost& cost, core::counting how) noexcept;
  void count_time(op_id op, double seconds, double least) noexcept;
  void count_check(op_id op, bool judged) noexcept;
  op_counts of(op_id op) const;
  op_counts all() const;
  void reset();

 private:
  mutable std::mutex adding_;
  std::vector<op_counts> counts_;  // one for each operator
};

}  // namespace velo::ops
