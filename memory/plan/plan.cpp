// How buffers are added to a plan and placed, and how both are written.
#include "memory/plan/plan.hpp"

#include <utility>

#include "core/failure.hpp"
#include "memory/plan/picture.hpp"
#include "memory/swap/plan/place_stays.hpp"

namespace velo::memory {

using core::fail;
using core::text;

plan_steps& plan::steps() const {
  if (steps_ == nullptr) fail(VELO_ERR_STATE, "plan", "a plan with a pool", "one without");
  return *steps_;
}

void plan::require_no_step() const {
  if (steps_ != nullptr && steps_->is_open())
    fail(VELO_ERR_STATE, "plan", "no step that has begun", "one that has not ended");
}

// The addresses, the swaps, and that the buffers are a recording's.
void plan::forget() noexcept {
  solved_ = false;
  swaps_.reset();
  if (steps_ != nullptr) steps_->forget();
}

void plan::begin(velo_plan_mode mode) {
  plan_steps& of = steps();
  require_no_step();
  if (mode == VELO_PLAN_RECORD) return of.record();
  if (!of.is_recorded() || !solved_)
    fail(VELO_ERR_STATE, "plan", "a recorded step, solved",
         of.is_recorded() ? "one that is not solved" : "buffers that are not of a step");
  of.replay(placed_);
}

void plan::end() {
  plan_steps& of = steps();
  if (!of.is_open()) fail(VELO_ERR_STATE, "plan", "a step that has begun", "none");
  if (of.mode() == VELO_PLAN_REPLAY) return of.end(nullptr);
  plan_steps::recording made = of.recorded(most());
  plan_table table;
  std::int64_t bytes = 0;
  for (const lifetime& b : made.buffers) {
    table.names.push_back(std::to_string(table.names.size()));
    bytes += b.size;
  }
  of.end(&made);
  table.buffers = std::move(made.buffers);
  table_ = std::move(table);
  uses_ = std::move(made.uses);
  bytes_ = bytes;
  solved_ = false;
  swaps_.reset();
}

void plan::add_use(std::int64_t index, std::int64_t time, velo_access access) {
  require_no_step();
  require_buffer(index);
  const lifetime& b = table_.buffers[index];
  if (time < b.lower || time >= b.upper)
    fail(VELO_ERR_ARGUMENT, "time",
         core::concat("[", b.lower, ", ", b.upper, "), when the buffer is alive"),
         core::number(time));
  uses_.uses.push_back({index, time, access});
  swaps_.reset();
}

void plan::add_work(std::int64_t time, double seconds) {
  require_no_step();
  uses_.work.push_back({time, seconds});
  swaps_.reset();
}

std::int64_t plan::add(std::int64_t lower, std::int64_t upper, std::int64_t size) {
  require_no_step();
  const std::size_t index = table_.buffers.size();
  std::string name = std::to_string(index);
  if (index == table_.buffers.capacity()) table_.buffers.reserve(2 * index + 16);
  table_.names.push_back(std::move(name));  // the last that can fail
  table_.buffers.push_back({lower, upper, size});
  bytes_ += size;
  forget();
  return static_cast<std::int64_t>(index);
}

void plan::read(velo_plan_format format, std::string_view text) {
  require_no_step();
  plan_table grown = table_;
  format == VELO_PLAN_CSV ? read_placement(text, most(), grown) : read_rmm_log(text, most(), grown);
  for (std::size_t i = table_.buffers.size(); i < grown.buffers.size(); ++i)
    bytes_ += grown.buffers[i].size;
  table_ = std::move(grown);
  forget();
}

void plan::solve(plan_limits limits) {
  require_no_step();
  limits.capacity = capacity_;
  placed_ = place(table_.buffers, limits);
  solved_ = true;
  if (steps_ != nullptr) steps_->move();
}

void plan::solve_swaps(const velo_swap_options& options) {
  require_no_step();
  swaps_ = std::make_shared<const swap_schedule>(plan_swaps(table_.buffers, uses_, options));
  swaps_for_ = options;
}

void plan::place_swaps(plan_limits limits) {
  require_no_step();
  if (swaps_ == nullptr) fail(VELO_ERR_STATE, "plan", "a plan whose swaps are solved", "none");
  for (const swap_transfer& t : swaps_->transfers)
    if (t.action == VELO_SWAP_ACTION_DROP)
      fail(VELO_ERR_UNSUPPORTED, "plan", "swaps that keep what they move",
           core::concat("buffer ", t.buffer, ", dropped to be made again"));
  limits.capacity = static_cast<std::int64_t>(swaps_for_.budget);
  auto placed = std::make_shared<swap_schedule>(*swaps_);
  place_stays(*placed, limits);
  swaps_ = std::move(placed);
}

std::shared_ptr<const swap_schedule> plan::placed_swaps() const {
  require_no_step();
  if (swaps_ == nullptr || !swaps_->placed)
    fail(VELO_ERR_STATE, "plan", "a plan whose swaps have their places",
         swaps_ == nullptr ? "one without swaps" : "swaps without places");
  return swaps_;
}

void plan::fill(std::int64_t index, velo_plan_stay& stay) const {
  const std::int64_t count = swaps_ ? static_cast<std::int64_t>(swaps_->stays.size()) : 0;
  if (index < 0 || index >= count) {
    fail(VELO_ERR_ARGUMENT, "index", core::concat("the index of one of ", count, " stays"),
         core::number(index));
  }
  const swap_stay& s = swaps_->stays[index];
  stay.buffer = s.buffer;
  stay.begin = s.begin;
  stay.end = s.end;
  stay.bytes = static_cast<std::uint64_t>(s.bytes);
  stay.offset = s.offset;
}

void plan::require_buffer(std::int64_t index) const {
  const auto count = static_cast<std::int64_t>(table_.buffers.size());
  if (index < 0 || index >= count) {
    fail(VELO_ERR_ARGUMENT, "index", core::concat("the index of one of ", count, " buffers"),
         core::number(index));
  }
}

void plan::fill(std::int64_t index, velo_plan_buffer& buffer) const {
  require_buffer(index);
  const lifetime& b = table_.buffers[index];
  buffer.lower = b.lower;
  buffer.upper = b.upper;
  buffer.bytes = static_cast<std::uint64_t>(b.size);
  buffer.offset = solved_ ? placed_.offsets[index] : -1;
}

void plan::fill(std::int64_t index, velo_plan_use_info& use) const {
  const auto count = static_cast<std::int64_t>(uses_.uses.size());
  if (index < 0 || index >= count) {
    fail(VELO_ERR_ARGUMENT, "index", core::concat("the index of one of ", count, " uses"),
         core::number(index));
  }
  const plan_use& u = uses_.uses[index];
  use.access = u.access;
  use.buffer = u.buffer;
  use.time = u.time;
}

void plan::fill(std::int64_t index, velo_plan_swap& swap) const {
  const std::int64_t count = swaps_ ? static_cast<std::int64_t>(swaps_->transfers.size()) : 0;
  if (index < 0 || index >= count) {
    fail(VELO_ERR_ARGUMENT, "index", core::concat("the index of one of ", count, " transfers"),
         core::number(index));
  }
  const swap_transfer& t = swaps_->transfers[index];
  swap.action = t.action;
  swap.buffer = t.buffer;
  swap.after = t.after;
  swap.before = t.before;
  swap.begin = t.begin;
  swap.end = t.end;
  swap.stay = t.stay;
}

void plan::fill(velo_plan_swap_stats& stats) const {
  if (!swaps_) return;
  stats.solved = 1;
  stats.transfers = swaps_->transfers.size();
  stats.bytes_out = static_cast<std::uint64_t>(swaps_->bytes_out);
  stats.bytes_in = static_cast<std::uint64_t>(swaps_->bytes_in);
  stats.bytes_peak = static_cast<std::uint64_t>(swaps_->peak);
  stats.bytes_live = static_cast<std::uint64_t>(swaps_->peak_live);
  stats.compute_seconds = swaps_->compute;
  stats.stall_seconds = swaps_->stall;
  stats.bound_seconds = swaps_->bound;
  stats.make_seconds = swaps_->remaking;
  stats.stages = swaps_->stage_ends.size();
  stats.stays = swaps_->stays.size();
  stats.placed = swaps_->placed ? 1 : 0;
  stats.bytes_planned = static_cast<std::uint64_t>(swaps_->height);
}

void plan::fill(velo_plan_stats& stats) const {
  stats.uses = uses_.uses.size();
  stats.solved = solved_ ? 1 : 0;
  stats.buffers = table_.buffers.size();
  stats.capacity = static_cast<std::uint64_t>(capacity_);
  stats.lower_bound =
      static_cast<std::uint64_t>(solved_ ? placed_.lower_bound : largest_live(table_.buffers));
  stats.height = solved_ ? static_cast<std::uint64_t>(placed_.height) : 0;
}

std::string plan::write(velo_plan_format format) const {
  if (format == VELO_PLAN_SWAPS) {
    if (!swaps_) fail(VELO_ERR_STATE, "plan", "a plan whose swaps are solved", "one without swaps");
    return write_swaps(*swaps_, swaps_for_);
  }
  if (!solved_) fail(VELO_ERR_STATE, "plan", "a solved plan", "one without addresses");
  return format == VELO_PLAN_CSV ? write_placement(table_, placed_.offsets)
                                 : draw_placement(table_, placed_.offsets, capacity_);
}

}  // namespace velo::memory
