// A lane: an ordered queue of work and the one thread that runs it.
//
// A queue stream is a lane. Objects whose work waits beside the streams (a group of ranks, a tier
// of memory) own lanes and order them with streams by points. Work that computes holds the
// context's turn on the lane's thread; work that waits does not. The first failure is kept, the
// work queued behind it is dropped, and every later call except clear throws it. A piece of work
// costs about 0.12 us for locks that are rarely contended, and waking the thread if it sleeps.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/failure.hpp"
#include "core/host/arena.hpp"
#include "core/stream/event.hpp"
#include "core/stream/threads.hpp"
#include "core/stream/work.hpp"

namespace velo::core {

class context;
class stream;

class lane {
 public:
  // Starts the thread. on: the stream with which the work calls velo; a lane without a stream takes
  // the inline stream. of: the handle of the object that owns the lane, which the work cannot
  // destroy. name: the thread's name, at most 15 characters.
  lane(context& owner, stream& on, const void* of, const char* name);
  ~lane();  // finishes the queued work
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;

  // Whether the caller is work of this lane.
  bool is_current() const noexcept { return thread_.is_current(); }

  // The memory is recycled. make_before adds bytes behind the work for its own use (work.hpp).
  template <class W, class... Args>
  work_ptr<W> make(Args&&... args) {
    return pool_.make<W>(std::forward<Args>(args)...);
  }
  template <class W, class... Args>
  work_ptr<W> make_before(std::size_t bytes, Args&&... args) {
    return pool_.make_before<W>(bytes, std::forward<Args>(args)...);
  }
  void submit(work_ptr<work> piece);    // made by this lane; throws the kept failure, FULL
  void require_room(int pieces) const;  // throws what submit() would throw

  void pass(std::shared_ptr<point> here);       // when all work submitted so far is done
  void wait_for(std::shared_ptr<point> until);  // before any work submitted later

  void synchronize();  // until all work submitted so far is done; throws the kept failure
  bool idle() const;   // throws the kept failure
  void clear() noexcept;

 private:
  static void* serve(void* self);
  work_ptr<work> next_piece();  // nullptr: the lane is being destroyed and all is done
  void process(work& piece);
  void report_queued(const work& piece) noexcept;
  void finish_piece() noexcept;
  void keep_failure(const work& failed) noexcept;
  void throw_kept() const;  // with the lock held, as the next one
  void refuse_when_full(int pieces) const;

  context& owner_;
  stream& on_;
  const void* const of_;
  work_pool pool_;
  arena scratch_;  // of work that waits
  native_thread thread_;
  mutable std::mutex lock_;
  std::condition_variable arrived_, finished_;
  work* first_ = nullptr;
  work* last_ = nullptr;
  std::uint64_t submitted_count_ = 0, finished_count_ = 0;
  bool closing_ = false;
  failure kept_;  // code VELO_OK: none
};

}  // namespace velo::core
