// Copies: how they are queued, and how a lane runs them.
//
// A piece of work on a lane runs its own copy and, while the tier has room, the ready copies queued
// behind it, so that small objects keep as many requests under way as a large one. A piece whose
// copy has already been run does nothing. A job is taken from the queue exactly once, under the
// lock of the jobs.
#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "core/context.hpp"
#include "core/failure.hpp"
#include "memory/swap/swap.hpp"

namespace velo::memory {

using clock = std::chrono::steady_clock;

// A copy in the queue of its lane.
struct swap::copy final : core::work {
  copy(swap& home, object_ptr of, std::shared_ptr<job> mine)
      : work(core::demand::waits), home(home), of(std::move(of)), mine(std::move(mine)) {}

  void run(core::execution&) override { home.serve(*mine); }

  swap& home;
  const object_ptr of;  // may have been dropped meanwhile
  const std::shared_ptr<job> mine;
};

// The copies that a tier receives: one given copy, then those that are ready.
class swap::ready final : public tier::copies {
 public:
  ready(swap& home, job& first) : home_(home), to_(first.to), first_(&first) {}

  bool next(tier::copy& one) noexcept override {
    while (job* taken = home_.take_ready(to_, std::exchange(first_, nullptr)))
      if (home_.begin(*taken, one)) return true;
    return false;
  }
  void done(const tier::copy& one, const core::failure* why) noexcept override {
    const clock::time_point now = clock::now();
    home_.count_seconds(to_, std::chrono::duration<double>(now - since_).count());
    since_ = now;
    home_.finish(*static_cast<job*>(one.owner), why);
  }

 private:
  swap& home_;
  const direction to_;
  job* first_;
  clock::time_point since_ = clock::now();
};

bool swap::job::may_begin() const noexcept {
  const auto passed = [](const auto& point) { return point == nullptr || point->passed(); };
  const auto left = [](const auto& one) { return one->passed->passed(); };
  return std::all_of(std::begin(after), std::end(after), passed) &&
         std::all_of(room.begin(), room.end(), left);
}

void swap::job::await() const noexcept {
  for (const auto& point : after)
    if (point != nullptr) point->wait(-1);
  for (const auto& one : room) one->passed->wait(-1);
}

// The caller holds the object's lock.
void swap::queue(const object_ptr& o, direction to, char* memory, core::stream& after,
                 core::event* event) {
  auto mine = std::make_shared<job>();
  mine->of = o.get();
  mine->to = to;
  mine->memory = memory;
  mine->passed = event != nullptr ? event->next() : std::make_shared<core::point>();
  mine->after[0] = std::make_shared<core::point>();
  submit(o, mine, &after);
  if (event != nullptr) event->set(mine->passed);
}

// The caller holds the object's lock. Everything that can fail comes before the object changes; a
// marker left in the stream by then is harmless. after: the stream that passes the job's first
// point; nullptr: that point is already queued.
void swap::submit(const object_ptr& o, std::shared_ptr<job> mine, core::stream* after) {
  if (o->queued > 0) mine->after[1] = o->last->passed;
  core::lane& lane = lane_of(mine->to);
  core::work_ptr<copy> piece = lane.make<copy>(*this, o, mine);
  if (after != nullptr) after->pass(mine->after[0]);
  lane.submit(std::move(piece));
  offer(*mine);
  o->failed.code = VELO_OK;
  o->resident_later = mine->to == direction::in;
  ++o->queued;
  o->last = std::move(mine);
}

// If memory is lacking to add a job to the queue, its own piece of work runs it.
void swap::offer(job& added) noexcept {
  const std::lock_guard<std::mutex> lock(jobs_lock_);
  if (added.taken) return;
  try {
    jobs_[static_cast<int>(added.to)].push_back(&added);
  } catch (const std::bad_alloc&) {
    return;
  }
}

void swap::serve(job& first) {
  {
    const std::lock_guard<std::mutex> lock(jobs_lock_);
    if (first.taken) return;
  }
  first.await();
  ready all(*this, first);
  first.to == direction::out ? tier_->write(all) : tier_->read(all);
}

// Takes `first` if it is not nullptr, else the oldest job whose waits are over; nullptr: none.
swap::job* swap::take_ready(direction to, job* first) noexcept {
  const std::lock_guard<std::mutex> lock(jobs_lock_);
  std::vector<job*>& queued = jobs_[static_cast<int>(to)];
  const auto found = std::find_if(queued.begin(), queued.end(), [&](const job* one) {
    return first != nullptr ? one == first : one->may_begin();
  });
  job* taken = first;
  if (found != queued.end()) {
    taken = *found;
    queued.erase(found);
  }
  if (taken != nullptr) taken->taken = true;
  return taken;
}

// Returns false if the copy ended at once. A copy queued behind a failed one is dropped and gets
// the same failure. So does a copy to memory whose earlier contents could not be copied out.
bool swap::begin(job& taken, tier::copy& one) noexcept {
  object& o = *taken.of;
  core::failure failed;
  bool ended = false;
  {
    const std::lock_guard<std::mutex> lock(o.lock);
    failed = o.failed;
    if (failed.code == VELO_OK && taken.to == direction::out && taken.stored) {
      o.stored = false;
      ended = true;
    }
  }
  for (const auto& one : taken.room)
    if (failed.code == VELO_OK) failed = one->failed;
  taken.room.clear();  // otherwise the jobs of a step would own one another in one long chain
  if (failed.code != VELO_OK) {
    end(taken, failed, true);
    return false;
  }
  if (ended) {
    end(taken, {}, false);
    return false;
  }
  bool held = false;
  try {
    if (taken.to == direction::out) {
      hold(o);
      held = true;
      taken.made = tier_->make(o.bytes, o.cold);
    }
  } catch (...) {
    failed = core::current_failure();
    if (held) let_go(o);
    end(taken, failed, false);
    return false;
  }
  tier::image* there = taken.to == direction::out ? taken.made.get() : o.image.get();
  one = {there, 0, taken.memory, o.bytes, &taken};
  return true;
}

void swap::finish(job& carried, const core::failure* why) noexcept {
  object& o = *carried.of;
  const bool leaves = carried.to == direction::out;
  if (why != nullptr) {
    carried.made.reset();
    if (leaves) let_go(o);
    end(carried, *why, false);
    return;
  }
  count_bytes(carried.to, o.bytes);
  {
    const std::lock_guard<std::mutex> lock(o.lock);
    if (!leaves && carried.stored) o.stored = true;
    if (!leaves && !carried.stored) give_up(o);
    if (leaves) o.image = std::move(carried.made);
    if (leaves && o.owned) {
      release(o, carried.memory, nullptr);
      // Otherwise a copy in is queued, to other memory.
      if (o.memory == carried.memory) o.memory = nullptr;
    }
  }
  end(carried, {}, false);
}

// dropped: the copy did not run because an earlier one failed.
void swap::end(job& ended, const core::failure& failed, bool dropped) noexcept {
  object& o = *ended.of;
  const bool leaves = ended.to == direction::out;
  ended.failed = failed;
  if (failed.code != VELO_OK && failed.function[0] == 0)
    core::copy_text(ended.failed.function, sizeof failed.function,
                    leaves ? "velo_swap_out" : "velo_swap_in");
  if (failed.code != VELO_OK && failed.argument[0] == 0)
    core::copy_text(ended.failed.argument, sizeof failed.argument, core::concat(o.noun, " ", o.id));
  if (failed.code != VELO_OK && !dropped) count_failure();
  {
    const std::lock_guard<std::mutex> lock(o.lock);
    --o.queued;
    if (failed.code != VELO_OK) {
      o.failed = ended.failed;
      // The object stays where it was. Memory allocated for a failed copy in is released.
      o.resident_later = o.image == nullptr || o.stored;
      if (leaves && !dropped) o.memory = ended.memory;
      if (!leaves && o.owned) {
        if (o.memory == ended.memory) o.memory = nullptr;
        release(o, ended.memory, nullptr);
      }
    }
  }
  ended.passed->pass();
}

}  // namespace velo::memory
