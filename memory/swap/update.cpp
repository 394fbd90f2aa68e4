// The update in slices: an optimizer's states are in the tier. One slice of each state at a time
// comes in, is updated by the caller's function, and goes out again.
//
// Three buffers rotate: while the function uses one, the next slice comes into the second and the
// previous slice leaves the third. So a slice comes in after the slice three before it has left.
// The copies are pieces of work on the swap's lanes. Everything they use is in the `sliced` object
// on the caller's stack, and the caller always waits for the last of them.
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/context.hpp"
#include "core/failure.hpp"
#include "core/handle/host_call.hpp"
#include "core/round_up.hpp"
#include "memory/swap/swap.hpp"

namespace velo::memory {

using core::fail;
using core::text;

namespace {

constexpr std::uint64_t page = 4096;  // alignment of the buffers, for O_DIRECT

std::uint64_t step_of(std::uint64_t bytes, std::uint64_t slices, std::uint64_t granule) {
  return core::round_up(core::ceil_div(bytes, slices), granule);
}

}  // namespace

class swap::sliced {
 public:
  sliced(swap& home, std::vector<object_ptr> objects, std::int64_t slices);
  ~sliced();
  sliced(const sliced&) = delete;
  sliced& operator=(const sliced&) = delete;

  void run(velo_swap_update_fn function, void* user);
  void carry(std::uint64_t slice, direction to) noexcept;  // called on a lane

 private:
  class moves;
  static constexpr std::size_t buffer_count = 3;

  // The copy of a slice in one direction.
  struct leg {
    std::shared_ptr<core::point> passed;  // nullptr: not begun
    core::failure failed;                 // written before `passed` passes
  };
  struct buffer {
    std::vector<char*> slices;  // one of each object
    leg in, out;
  };

  buffer& buffer_of(std::uint64_t slice) { return buffers_[slice % buffer_count]; }
  std::uint64_t bytes_of(std::uint64_t slice) const {
    return std::min(step_, bytes_ - slice * step_);
  }
  void begin(std::uint64_t slice, direction to);
  void finish(leg& of);
  void call(velo_swap_update_fn function, void* user, std::uint64_t slice);

  swap& home_;
  const std::vector<object_ptr> objects_;
  const std::uint64_t bytes_, step_, count_;
  std::uint64_t memory_bytes_ = 0;
  void* memory_ = nullptr;
  buffer buffers_[buffer_count];
};

// Copies a slice of every object in one direction.
struct swap::slice_copy final : core::work {
  slice_copy(sliced& of, std::uint64_t slice, direction to)
      : work(core::demand::waits), of(of), slice(slice), to(to) {}

  void run(core::execution&) override {
    if (after != nullptr) after->wait(-1);
    of.carry(slice, to);
  }

  sliced& of;
  const std::uint64_t slice;
  const direction to;
  std::shared_ptr<core::point> after;  // or nullptr
};

// Slices have equal sizes, whole granules of the tier; the last may be smaller.
swap::sliced::sliced(swap& home, std::vector<object_ptr> objects, std::int64_t slices)
    : home_(home),
      objects_(std::move(objects)),
      bytes_(objects_.front()->bytes),
      step_(step_of(bytes_, static_cast<std::uint64_t>(slices), home.tier_->granule())),
      count_(core::ceil_div(bytes_, step_)) {
  const std::uint64_t room = core::round_up(std::min(step_, bytes_), page);
  for (buffer& one : buffers_) one.slices.resize(objects_.size());
  memory_bytes_ = buffer_count * objects_.size() * room + page;
  memory_ = home_.owner_.memory().take(memory_bytes_);
  const auto address = reinterpret_cast<std::uintptr_t>(memory_);
  char* next = static_cast<char*>(memory_) + (core::round_up(address, page) - address);
  for (buffer& one : buffers_)
    for (char*& slice : one.slices) slice = std::exchange(next, next + room);
}

swap::sliced::~sliced() {
  for (buffer& one : buffers_)
    for (leg* of : {&one.in, &one.out})
      if (of->passed != nullptr) of->passed->wait(-1);
  home_.owner_.memory().give(memory_, memory_bytes_);
}

// A slice comes into a buffer after the buffer's previous slice has left.
void swap::sliced::begin(std::uint64_t slice, direction to) {
  buffer& at = buffer_of(slice);
  core::lane& lane = home_.lane_of(to);
  core::work_ptr<slice_copy> piece = lane.make<slice_copy>(*this, slice, to);
  auto passed = std::make_shared<core::point>();
  leg& mine = to == direction::in ? at.in : at.out;
  if (to == direction::in) piece->after = at.out.passed;
  if (to == direction::out && mine.passed != nullptr) finish(mine);
  const std::shared_ptr<core::point> before = std::exchange(mine.passed, passed);
  try {
    lane.submit(std::move(piece));
  } catch (...) {
    mine.passed = before;
    throw;
  }
}

// A slice's copies, one for each object, until one fails.
class swap::sliced::moves final : public tier::copies {
 public:
  moves(sliced& of, std::uint64_t slice, buffer& at, core::failure& failed)
      : of_(of), slice_(slice), at_(at), failed_(failed) {}

  bool next(tier::copy& one) noexcept override {
    if (next_ == of_.objects_.size() || failed_.code != VELO_OK) return false;
    object& o = *of_.objects_[next_];
    one = {o.image.get(), slice_ * of_.step_, at_.slices[next_], of_.bytes_of(slice_), &o};
    ++next_;
    return true;
  }
  void done(const tier::copy& one, const core::failure* why) noexcept override {
    if (why == nullptr || failed_.code != VELO_OK) return;
    failed_ = *why;
    core::copy_text(
        failed_.argument, sizeof failed_.argument,
        core::concat("object ", static_cast<const object*>(one.owner)->id, ", slice ", slice_));
  }

 private:
  sliced& of_;
  const std::uint64_t slice_;
  buffer& at_;
  core::failure& failed_;
  std::size_t next_ = 0;
};

void swap::sliced::carry(std::uint64_t slice, direction to) noexcept {
  buffer& at = buffer_of(slice);
  leg& mine = to == direction::in ? at.in : at.out;
  const std::shared_ptr<core::point> passed = mine.passed;  // which may outlive `mine`
  if (to == direction::in && at.out.failed.code != VELO_OK) {
    mine.failed = at.out.failed;  // the buffer's previous slice has not left
  } else {
    const auto begin = std::chrono::steady_clock::now();
    moves all(*this, slice, at, mine.failed);
    to == direction::in ? home_.tier_->read(all) : home_.tier_->write(all);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    home_.count_seconds(to, time.count());
    if (mine.failed.code == VELO_OK) {
      home_.count_bytes(to, objects_.size() * bytes_of(slice));
    } else {
      home_.count_failure();
    }
  }
  passed->pass();
}

void swap::sliced::finish(leg& of) {
  of.passed->wait(-1);
  if (of.failed.code != VELO_OK) throw core::failure(of.failed);
}

void swap::sliced::call(velo_swap_update_fn function, void* user, std::uint64_t slice) {
  const int answer = core::call_host("update", [&] {
    return function(user, slice * step_, bytes_of(slice),
                    reinterpret_cast<void* const*>(buffer_of(slice).slices.data()));
  });
  if (answer != 0)
    fail(VELO_ERR_FOREIGN, "update", "0", core::concat(answer, " for slice ", slice));
}

void swap::sliced::run(velo_swap_update_fn function, void* user) {
  begin(0, direction::in);
  for (std::uint64_t slice = 0; slice < count_; ++slice) {
    if (slice + 1 < count_) begin(slice + 1, direction::in);
    finish(buffer_of(slice).in);
    call(function, user, slice);
    begin(slice, direction::out);
  }
  for (buffer& one : buffers_)
    if (one.out.passed != nullptr) finish(one.out);
}

namespace {

// Marks objects as in an update during its lifetime.
template <class Object>
class updating {
 public:
  explicit updating(const std::vector<Object>& objects) : objects_(objects) {}
  ~updating() {
    for (std::size_t i = 0; i < marked_; ++i) {
      const std::lock_guard<std::mutex> lock(objects_[i]->lock);
      objects_[i]->updating = false;
    }
  }
  updating(const updating&) = delete;
  updating& operator=(const updating&) = delete;

  void mark() {
    for (; marked_ < objects_.size(); ++marked_) {
      auto& o = *objects_[marked_];
      const std::lock_guard<std::mutex> lock(o.lock);
      if (o.queued > 0 || o.updating || o.dropped || o.image == nullptr)
        fail(VELO_ERR_STATE, "objects", "objects that are out",
             core::concat("object ", o.id, ", which is not"));
      o.updating = true;
    }
  }

 private:
  const std::vector<Object>& objects_;
  std::size_t marked_ = 0;
};

// Counts an update during its lifetime.
class running {
 public:
  explicit running(std::atomic<int>& updates) : updates_(updates) { ++updates_; }
  ~running() { --updates_; }
  running(const running&) = delete;
  running& operator=(const running&) = delete;

 private:
  std::atomic<int>& updates_;
};

}  // namespace

void swap::update(const std::uint64_t* ids, std::int64_t count, std::int64_t slices,
                  velo_swap_update_fn function, void* user) {
  std::vector<object_ptr> objects;
  for (std::int64_t i = 0; i < count; ++i) {
    objects.push_back(find(ids[i]));
    if (objects.back()->bytes != objects.front()->bytes)
      fail(VELO_ERR_ARGUMENT, "objects", "objects of one size",
           core::concat("object ", ids[i], ", of another"));
    if (std::find(ids, ids + i, ids[i]) != ids + i)
      fail(VELO_ERR_ARGUMENT, "objects", "each object once",
           core::concat("object ", ids[i], " twice"));
    wait(ids[i], owner_.inline_stream());  // its copy out may not be done
  }
  owner_.require_can_wait("swap");  // copies out of slices may wait for the caller
  updating<object_ptr> marked(objects);
  marked.mark();
  const running counted(updates_);
  sliced(*this, objects, slices).run(function, user);
}

void swap::require_idle() const {
  if (updates_ > 0)
    fail(VELO_ERR_STATE, "swap", "a swap of which no update runs", "one in an update");
}

}  // namespace velo::memory
