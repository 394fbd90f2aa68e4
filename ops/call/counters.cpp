// Adds the work of calls up under a lock.
#include "ops/call/counters.hpp"

namespace velo::ops {

void op_counts::add(const op_counts& other) {
  calls += other.calls;
  flops_recorded += other.flops_recorded;
  flops_traversed += other.flops_traversed;
  flops_visible += other.flops_visible;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  seconds += other.seconds;
  least_seconds += other.least_seconds;
  checked += other.checked;
  not_judged += other.not_judged;
}

op_counters::op_counters() : counts_(static_cast<std::size_t>(op_count())) {}

void op_counters::count(op_id op, const op_cost& cost, core::counting how) noexcept {
  const double recorded = how == core::counting::on ? cost.flops : 0;
  const std::lock_guard<std::mutex> lock(adding_);
  counts_[static_cast<std::size_t>(op)].add({1, recorded, cost.flops, cost.flops_visible,
                                             cost.bytes_read, cost.bytes_written, 0, 0, 0, 0});
}

void op_counters::count_time(op_id op, double seconds, double least) noexcept {
  const std::lock_guard<std::mutex> lock(adding_);
  op_counts& counts = counts_[static_cast<std::size_t>(op)];
  counts.seconds += seconds;
  counts.least_seconds += least;
}

void op_counters::count_check(op_id op, bool judged) noexcept {
  const std::lock_guard<std::mutex> lock(adding_);
  op_counts& counts = counts_[static_cast<std::size_t>(op)];
  ++(judged ? counts.checked : counts.not_judged);
}

op_counts op_counters::of(op_id op) const {
  const std::lock_guard<std::mutex> lock(adding_);
  return counts_[static_cast<std::size_t>(op)];
}

op_counts op_counters::all() const {
  const std::lock_guard<std::mutex> lock(adding_);
  op_counts sum;
  for (const op_counts& one : counts_) sum.add(one);
  return sum;
}

void op_counters::reset() {
  const std::lock_guard<std::mutex> lock(adding_);
  for (op_counts& one : counts_) one = {};
}

}  // namespace velo::ops
