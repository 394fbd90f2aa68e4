// A step of planned swaps: runs the moves of a schedule in one arena, with each buffer at the
// address of its stay.
//
// The host says when a stage begins. All moves of the stage are queued then. Its copies wait for
// the end of the previous stage, for the same buffer's previous copy, and for the copies out of
// their addresses (swap_stay::room). The stage's stream waits for the contents that the stage needs
// and for the room of those that it makes. Every wait is for an earlier move of the schedule, so
// waits form no cycle. Two buffers never share an address, however long the copies take: the plan's
// seconds decide only when buffers move. After a failure the step can only be ended. An arena from
// the pool stays with the swap for the next step of that size on the same stream.
//
// Cost of a stage: a copy for each move that copies, and O(buffers of the stage).
#include <algorithm>
#include <utility>

#include "core/context.hpp"
#include "core/failure.hpp"
#include "core/index.hpp"
#include "memory/swap/host_tier.hpp"
#include "memory/swap/swap.hpp"

namespace velo::memory {

using core::fail;
using core::text;

class swap::planned {
 public:
  // before: the previous step, which has ended, or nullptr.
  planned(swap& home, std::shared_ptr<const swap_schedule> of, void* memory, velo_stream on,
          planned* before);
  ~planned() { give_memory(); }
  planned(const planned&) = delete;
  planned& operator=(const planned&) = delete;

  bool is_open() const { return open_; }
  std::int64_t begin_stage();
  void* memory_of(std::int64_t buffer) const;
  void end();

 private:
  using kind = swap_move::kind;

  std::uint64_t bytes() const { return static_cast<std::uint64_t>(plan_->height); }
  std::size_t stages() const { return plan_->stage_ends.size(); }
  core::stream& stream() const { return core::resolve<core::stream>(on_, "stream"); }
  object_ptr& object_of(const swap_stay& s) { return objects_[core::at(s.buffer)]; }
  void carry(const swap_move& move, const std::shared_ptr<core::point>& over);
  void take(const swap_stay& s);
  void copy(const swap_move& move, direction to, const std::shared_ptr<core::point>& over);
  void let_go(object_ptr& of);
  void wait_here() const;
  void give_memory() noexcept;
  void count(int change) noexcept;

  swap& home_;
  const std::shared_ptr<const swap_schedule> plan_;
  const bool owned_;
  const velo_stream on_;
  char* memory_ = nullptr;
  std::vector<object_ptr> objects_;               // by buffer; nullptr: not alive
  std::vector<std::shared_ptr<const job>> left_;  // by stay: its copy out
  // All copies; before the first, the previous step's unfinished ones.
  std::vector<std::shared_ptr<const job>> queued_;
  std::vector<std::shared_ptr<const job>> needed_;  // copies that the stage waits for
  std::size_t next_ = 0;                            // next move
  std::size_t begun_ = 0;                           // stages begun
  bool open_ = true, failed_ = false;
};

swap::planned::planned(swap& home, std::shared_ptr<const swap_schedule> of, void* memory,
                       velo_stream on, planned* before)
    : home_(home),
      plan_(std::move(of)),
      owned_(memory == nullptr && plan_->height > 0),
      on_(on),
      memory_(static_cast<char*>(memory)),
      left_(plan_->stays.size()) {
  std::int64_t buffers = 0;
  for (const swap_stay& s : plan_->stays) buffers = std::max(buffers, s.buffer + 1);
  objects_.resize(static_cast<std::size_t>(buffers));
  if (before != nullptr) {
    const bool same = owned_ && before->owned_ && before->on_ == on && before->bytes() == bytes();
    for (const std::shared_ptr<const job>& each : before->queued_)
      if (!each->passed->passed()) queued_.push_back(each);
    if (same) memory_ = std::exchange(before->memory_, nullptr);
    if (!same && before->owned_) {
      before->wait_here();
      before->give_memory();
    }
  }
  if (owned_ && memory_ == nullptr)
    memory_ = static_cast<char*>(allocate_from(home_.memory_, bytes()));
}

std::int64_t swap::planned::begin_stage() {
  if (failed_)
    fail(VELO_ERR_STATE, "swap", "a step in which no call has failed", "one that failed");
  if (begun_ == stages())
    fail(VELO_ERR_STATE, "swap", text("one of the %zu stages of the step", stages()),
         "one more stage");
  core::stream& on = stream();
  failed_ = true;  // until everything below has succeeded
  const auto over = std::make_shared<core::point>();
  on.pass(over);
  if (begun_ == 0)
    for (const std::shared_ptr<const job>& each : queued_)
      home_.await(each, on, "velo_swap_begin_stage", false);
  needed_.clear();
  for (; plan_->moves[next_].what != kind::ends; ++next_) carry(plan_->moves[next_], over);
  ++next_;
  for (const std::int64_t buffer : plan_->used[begun_]) {
    const object& o = *objects_[core::at(buffer)];
    const std::lock_guard<std::mutex> lock(o.lock);
    if (o.last != nullptr && o.queued > 0) needed_.push_back(o.last);
    if (o.queued == 0 && o.failed.code != VELO_OK) throw core::failure(o.failed);
  }
  for (const std::shared_ptr<const job>& each : needed_)
    home_.await(each, on, "velo_swap_begin_stage", true);
  failed_ = false;
  return plan_->stage_ends[begun_++];
}

void swap::planned::carry(const swap_move& move, const std::shared_ptr<core::point>& over) {
  if (move.what == kind::begins) return;
  const swap_stay& s = plan_->stays[core::at(move.stay)];
  if (move.what == kind::give) return let_go(object_of(s));
  if (move.what == kind::take) return take(s);
  copy(move, move.what == kind::out ? direction::out : direction::in, over);
}

void swap::planned::take(const swap_stay& s) {
  auto made = std::make_shared<object>(static_cast<std::uint64_t>(s.buffer),
                                       static_cast<std::uint64_t>(s.bytes), memory_ + s.offset,
                                       false, false);
  made->noun = "buffer";
  object_of(s) = std::move(made);
  count(1);
  for (const std::int32_t r : s.room) needed_.push_back(left_[core::at(r)]);
}

void swap::planned::copy(const swap_move& move, direction to,
                         const std::shared_ptr<core::point>& over) {
  const swap_stay& s = plan_->stays[core::at(move.stay)];
  const object_ptr& o = object_of(s);
  auto mine = std::make_shared<job>();
  mine->of = o.get();
  mine->to = to;
  mine->memory = memory_ + s.offset;
  mine->stored = move.stored;
  mine->passed = std::make_shared<core::point>();
  mine->after[0] = over;
  if (to == direction::in)
    for (const std::int32_t r : s.room) mine->room.push_back(left_[core::at(r)]);
  if (queued_.size() == queued_.capacity()) queued_.reserve(2 * queued_.size() + 16);
  const std::lock_guard<std::mutex> lock(o->lock);
  home_.require(*o, to);
  home_.submit(o, mine, nullptr);  // the last statement that can fail
  queued_.push_back(mine);
  if (to == direction::out) left_[core::at(move.stay)] = mine;
  o->memory = mine->memory;
}

void* swap::planned::memory_of(std::int64_t buffer) const {
  if (failed_ || begun_ == 0)
    fail(VELO_ERR_STATE, "swap", "a stage that has begun", failed_ ? "a step that failed" : "none");
  const std::vector<std::int64_t>& used = plan_->used[begun_ - 1];
  if (std::find(used.begin(), used.end(), buffer) == used.end())
    fail(VELO_ERR_ARGUMENT, "buffer", "a buffer that the stage uses", core::number(buffer));
  const object& o = *objects_[core::at(buffer)];
  const std::lock_guard<std::mutex> lock(o.lock);
  return o.memory;
}

// Drops the tier's copy of the object after the object's copies are done.
void swap::planned::let_go(object_ptr& of) {
  if (of == nullptr) return;
  {
    const std::lock_guard<std::mutex> lock(of->lock);
    if (of->queued > 0) {
      home_.discard_behind(of);
    } else {
      home_.give_up(*of);
    }
  }
  of.reset();
  count(-1);
}

// The stream waits for all copies of a complete step. If the step ends early, the caller waits for
// them.
void swap::planned::end() {
  if (failed_ || begun_ < stages()) wait_here();
  for (object_ptr& o : objects_) let_go(o);
  open_ = false;
}

void swap::planned::wait_here() const {
  for (const std::shared_ptr<const job>& each : queued_)
    home_.owner_.inline_stream().await(*each->passed, home_.owner_, "swap");
}

void swap::planned::give_memory() noexcept {
  if (!owned_ || memory_ == nullptr) return;
  for (const velo_stream on : {on_, velo_stream{}}) try {
      free_to(home_.memory_, memory_, bytes(), on);
      break;
    } catch (...) {  // the stream or the pool has ended, so nothing uses the memory any more
      continue;
    }
  memory_ = nullptr;
}

void swap::planned::count(int change) noexcept {
  const std::lock_guard<std::mutex> lock(home_.lock_);
  home_.counted_.planned += static_cast<std::uint64_t>(change);
}

swap::planned& swap::step() const {
  if (step_ == nullptr || !step_->is_open())
    fail(VELO_ERR_STATE, "swap", "a swap with a step that has begun", "none");
  return *step_;
}

void swap::begin_step(std::shared_ptr<const swap_schedule> of, void* memory, velo_stream on) {
  if (step_ != nullptr && step_->is_open())
    fail(VELO_ERR_STATE, "swap", "a swap without a step", "one in a step that has not ended");
  if (memory == nullptr && memory_ == nullptr)
    fail(VELO_ERR_STATE, "memory", "memory, or a swap with a pool for it", "NULL");
  step_ = std::make_shared<planned>(*this, std::move(of), memory, on, step_.get());
}

std::int64_t swap::begin_stage() {
  return step().begin_stage();
}

void* swap::buffer_of_step(std::int64_t buffer) const {
  return step().memory_of(buffer);
}

void swap::end_step() {
  step().end();
}

}  // namespace velo::memory
