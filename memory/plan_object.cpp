// A plan's life: buffers come, addresses are found, buffers or addresses go out.
#include "memory/plan_object.hpp"

#include <utility>

#include "core/failure.hpp"
#include "memory/plan_picture.hpp"

namespace velo::memory {

using core::fail;
using core::text;

std::int64_t plan::add(std::int64_t lower, std::int64_t upper, std::int64_t size) {
  const std::size_t index = table_.buffers.size();
  std::string name = std::to_string(index);
  if (index == table_.buffers.capacity()) table_.buffers.reserve(2 * index + 16);
  table_.names.push_back(std::move(name));  // the last that can fail
  table_.buffers.push_back({lower, upper, size});
  bytes_ += size;
  solved_ = false;
  return static_cast<std::int64_t>(index);
}

void plan::read(velo_plan_format format, std::string_view text) {
  plan_table grown = table_;
  format == VELO_PLAN_CSV ? read_placement(text, most(), grown) : read_rmm_log(text, most(), grown);
  for (std::size_t i = table_.buffers.size(); i < grown.buffers.size(); ++i)
    bytes_ += grown.buffers[i].size;
  table_ = std::move(grown);
  solved_ = false;
}

void plan::solve(double seconds, std::uint64_t seed) {
  plan_limits limits;
  limits.capacity = capacity_;
  limits.seconds = seconds;
  limits.seed = seed;
  placed_ = place(table_.buffers, limits);
  solved_ = true;
}

void plan::fill(std::int64_t index, velo_plan_buffer& buffer) const {
  const auto count = static_cast<std::int64_t>(table_.buffers.size());
  if (index < 0 || index >= count) {
    fail(VELO_ERR_ARGUMENT, "index",
         text("the index of one of %lld buffers", static_cast<long long>(count)),
         text("%lld", static_cast<long long>(index)));
  }
  const lifetime& b = table_.buffers[index];
  buffer.lower = b.lower;
  buffer.upper = b.upper;
  buffer.bytes = static_cast<std::uint64_t>(b.size);
  buffer.offset = solved_ ? placed_.offsets[index] : -1;
}

void plan::fill(velo_plan_stats& stats) const {
  stats.solved = solved_ ? 1 : 0;
  stats.buffers = table_.buffers.size();
  stats.capacity = static_cast<std::uint64_t>(capacity_);
  stats.lower_bound =
      static_cast<std::uint64_t>(solved_ ? placed_.lower_bound : largest_live(table_.buffers));
  stats.height = solved_ ? static_cast<std::uint64_t>(placed_.height) : 0;
}

std::string plan::write(velo_plan_format format) const {
  if (!solved_) fail(VELO_ERR_STATE, "plan", "a solved plan", "one without addresses");
  return format == VELO_PLAN_CSV ? write_placement(table_, placed_.offsets)
                                 : draw_placement(table_, placed_.offsets, capacity_);
}

}  // namespace velo::memory
