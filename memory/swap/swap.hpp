// The swap manager behind velo_swap, from large to small:
//
// - a swap has objects, known by numbers; a tier (tier.hpp) that keeps their contents while they
//   are out; and a lane for each direction, whose work waits and never holds a context's turn;
// - a copy is a piece of work on a lane. It waits for the stream it was ordered behind and for the
//   same object's previous copy, which may be on the other lane. Then it passes itself to the tier,
//   together with the ready copies queued behind it (copies.cpp);
// - the result of a copy is stored with the point that it passed, so that a waiter learns of that
//   copy's failure, whatever has happened to the object since;
// - on top are buckets of layers (layers.cpp), the update in slices (update.cpp) and steps of
//   planned swaps (planned.cpp).
//
// Every wait is for work queued by an earlier call, so waits form no cycle. A lane's work never
// throws: a failure belongs to the object. An object's lock guards the object's state, the swap's
// lock its tables; neither is held during a copy, an allocation or a wait. Thread-safe. Cost of a
// call: two allocations, two markers in queues.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/handle/handle_kinds.hpp"
#include "core/stream/stream.hpp"
#include "memory/swap/plan/swap_schedule.hpp"
#include "memory/swap/tier.hpp"
#include "velo/swap.h"

namespace velo::memory {

class swap {
 public:
  // desc: checked. Throws HANDLE, UNSUPPORTED, MEMORY, IO.
  swap(core::context& owner, const velo_swap_desc& desc);
  ~swap();  // finishes the queued work
  swap(const swap&) = delete;
  swap& operator=(const swap&) = delete;

  core::context& owner() const noexcept { return owner_; }

  std::uint64_t add(void* memory, std::uint64_t bytes, bool cold);
  void drop(std::uint64_t id, velo_stream stream);
  void out(std::uint64_t id, core::stream& after, core::event* end);
  void in(std::uint64_t id, void* memory, core::stream& after, core::event* end);
  void wait(std::uint64_t id, core::stream& waiting);
  void fill(std::uint64_t id, velo_swap_object& info) const;
  void fill(velo_swap_stats& stats) const;

  void assign(std::uint64_t id, std::int64_t layer);
  void forward(std::int64_t layer, core::stream& on);
  void backward(std::int64_t layer, core::stream& on);

  void update(const std::uint64_t* ids, std::int64_t count, std::int64_t slices,
              velo_swap_update_fn function, void* user);
  void require_idle() const;  // throws STATE while an update runs

  // A step of planned swaps. Not for two threads at once.
  void begin_step(std::shared_ptr<const swap_schedule> of, void* memory, velo_stream on);
  std::int64_t begin_stage();                       // the time at which the stage ends
  void* buffer_of_step(std::int64_t buffer) const;  // where a buffer of the current stage is
  void end_step();

 private:
  enum class direction { out, in };

  struct object;

  // A queued copy. Its result, `failed`, is written before `passed` passes, and never afterwards.
  struct job {
    object* of = nullptr;
    direction to = direction::out;
    char* memory = nullptr;
    std::shared_ptr<core::point> after[2];         // or nullptr
    std::vector<std::shared_ptr<const job>> room;  // copies out that must have left this memory
    std::shared_ptr<core::point> passed;
    core::failure failed;
    bool stored = false;  // out: the image is already up to date; in: the image is kept
    bool taken = false;   // by its lane, under the lock of the jobs
    std::unique_ptr<tier::image> made;  // the new image of a copy out

    bool may_begin() const noexcept;
    void await() const noexcept;
  };

  struct object {
    object(std::uint64_t id, std::uint64_t bytes, char* memory, bool owned, bool cold)
        : id(id), bytes(bytes), owned(owned), cold(cold), memory(memory) {}

    const std::uint64_t id, bytes;
    const bool owned, cold;
    const char* noun = "object";  // names the object in failures

    mutable std::mutex lock;             // guards the following members
    char* memory;                        // nullptr: owned by the swap and out
    std::unique_ptr<tier::image> image;  // while the object is out or stored
    bool stored = false;                 // the image equals the memory
    bool resident_later = true;          // after everything queued is done
    int queued = 0;                      // copies
    bool updating = false;               // an update uses its image
    bool dropped = false;                // nothing more is queued for it
    core::failure failed;                // of the last copy; code VELO_OK: none
    std::shared_ptr<const job> last;     // nullptr: no copy so far
    std::int64_t layer = -1;
  };
  using object_ptr = std::shared_ptr<object>;

  struct copy;
  class ready;
  struct discard;
  struct awaited;
  struct slice_copy;
  class sliced;
  class planned;

  object_ptr find(std::uint64_t id) const;    // throws ARGUMENT
  void require_known(const object& o) const;  // with its lock; throws ARGUMENT
  void require(const object& o, direction to) const;
  void require_droppable(const object& o) const;
  void drop_behind(const object_ptr& o, velo_stream stream);
  core::work_ptr<discard> discarded(const object_ptr& o, std::shared_ptr<core::point> reached);
  void discard_behind(const object_ptr& o);
  void queue(const object_ptr& o, direction to, char* memory, core::stream& after,
             core::event* end);
  void submit(const object_ptr& o, std::shared_ptr<job> mine, core::stream* after);
  void await(std::shared_ptr<const job> of, core::stream& waiting, const char* function,
             bool contents);
  planned& step() const;  // throws STATE
  core::lane& lane_of(direction to) noexcept { return to == direction::out ? *out_ : *in_; }

  void offer(job& added) noexcept;

  // Called on the lanes.
  void serve(job& first);
  job* take_ready(direction to, job* first) noexcept;
  bool begin(job& taken, tier::copy& one) noexcept;
  void hold(const object& o);
  void finish(job& carried, const core::failure* why) noexcept;
  void end(job& ended, const core::failure& failed, bool dropped) noexcept;
  void give_up(object& o) noexcept;
  void release(const object& o, char* memory, velo_stream stream) noexcept;

  std::vector<object_ptr> bucket(std::int64_t layer);
  bool is_resident_later(const object& o) const;

  struct counters {
    std::uint64_t held = 0, peak = 0, objects_out = 0, planned = 0;
    std::uint64_t bytes[2] = {}, failures = 0;
    double seconds[2] = {};
  };
  void let_go(const object& o) noexcept;
  void count_bytes(direction to, std::uint64_t bytes) noexcept;
  void count_seconds(direction to, double seconds) noexcept;
  void count_failure() noexcept;

  core::context& owner_;
  std::atomic<int> updates_{0};  // running updates
  const velo_pool memory_;
  const std::uint64_t limit_, minimum_;
  std::unique_ptr<tier> tier_;

  mutable std::mutex lock_;  // guards the following members
  std::unordered_map<std::uint64_t, object_ptr> objects_;
  std::unordered_map<std::int64_t, std::vector<std::uint64_t>> layers_;
  std::uint64_t next_id_ = 1;
  counters counted_;

  std::mutex jobs_lock_;  // guards the following member
  std::vector<job*>
      jobs_[2];  // queued and not taken, by direction; owned by their work on the lane

  std::shared_ptr<planned> step_;  // the last step, or nullptr

  std::optional<core::lane> out_, in_;  // declared after everything that their work uses
};

}  // namespace velo::memory

template <>
struct velo::core::handle_traits<velo::memory::swap> {
  using handle = velo_swap;
  static constexpr handle_kind& kind = kinds::swap;
};
