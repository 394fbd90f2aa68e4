// Steps of a plan: a recorded step's requests, and a replayed step's requests matched with them.
//
// A replay follows the recording thread by thread, each with a cursor. A request that is not the
// next one of its thread is searched among those just skipped and just ahead, so that one
// difference does not cause others. A matched request gets its planned address unless a block is in
// use there, which the arena knows (arena.hpp): a wrong match costs memory, never correctness. All
// other requests go to the pool. Requests, frees and uses are thread-safe, and may overlap with the
// beginning and the end of a step, which must not overlap with one another. Cost: a lock, a
// comparison, the arena's search.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/stream/event.hpp"
#include "memory/plan/arena.hpp"
#include "memory/plan/solver/placement.hpp"
#include "memory/pool/pool.hpp"
#include "memory/swap/plan/uses.hpp"
#include "velo/plan.h"

namespace velo::memory {

class plan_steps {
 public:
  explicit plan_steps(velo_pool pool) : pool_(pool) {}
  ~plan_steps();
  plan_steps(const plan_steps&) = delete;
  plan_steps& operator=(const plan_steps&) = delete;

  // The result of a recording: buffers in the order of their requests.
  struct recording {
    std::vector<lifetime> buffers;
    plan_uses uses;
    std::vector<std::int64_t> buffer_of;  // by request; -1: the pool's
    std::uint64_t granularity;            // of sizes
  };

  void record();  // begins a step
  // Begins a step; `addresses`: of the buffers that the last recording left. Throws MEMORY.
  void replay(const placement& addresses);
  // The open recording so far; buffers larger than `most` bytes are left to the pool.
  recording recorded(std::int64_t most) const;
  // Ends the step: a recording with recorded(), a replay with nullptr.
  void end(const recording* made) noexcept;
  bool is_open() const noexcept { return open_; }
  velo_plan_mode mode() const noexcept { return counted_.mode; }

  // A recording is valid while the plan's buffers are those it left.
  bool is_recorded() const noexcept { return recorded_; }
  void forget() noexcept { recorded_ = false; }
  void move() noexcept { moved_ = true; }  // the buffers have other addresses now

  void* allocate(const pool_request& request);
  void free(void* memory, std::uint64_t bytes, velo_stream stream);
  void use(const void* memory, velo_access access);
  void work(double seconds);
  void fill(velo_plan_step& step) const;

 private:
  struct recorded_request {
    pool_request request;
    std::int64_t buffer;  // of the plan; -1: the pool's in a replay as well
  };
  struct cursor {  // the place of a thread in the recording
    pid_t thread;
    std::size_t recorded;  // the thread of the recording that it follows
    std::size_t next = 0;  // index into that thread's requests
    std::size_t lost = 0;  // requests since the last match
  };
  struct life {
    std::int64_t begin, end;  // end 0: the pool's in a replay
  };
  struct pending {  // freed on a stream
    std::shared_ptr<core::point> until;
    plan_arena* from;
    std::uint64_t offset;
  };

  pool& home() const;  // throws HANDLE when it has ended
  void begin(velo_plan_mode mode);
  void* note(pool& from, const pool_request& request);
  void* take_matched(pool& from, const pool_request& request);
  void* take(pool& from, std::int64_t buffer, const pool_request& request);
  void make_room(pool& in, std::uint64_t bytes);
  bool free_planned(pool& of, void* memory, velo_stream stream);
  void give(pool& of, plan_arena& from, std::uint64_t offset) noexcept;
  void collect(pool& of) noexcept;
  cursor& cursor_here(const pool_request& request);
  std::int64_t match(cursor& at, const pool_request& request);

  const velo_pool pool_;
  mutable std::mutex lock_;
  bool open_ = false, recorded_ = false, moved_ = true;
  velo_plan_step counted_{};
  std::vector<cursor> cursors_;

  // The recording: requests in order and by thread, and their lives.
  std::vector<recorded_request> requests_;
  std::vector<std::vector<std::int32_t>> threads_;
  std::vector<life> lives_;  // by request
  plan_uses uses_;           // by request
  std::unordered_map<const void*, std::int32_t> alive_;
  std::int64_t time_ = 0;

  // The replay.
  std::uint64_t granularity_ = unit;                 // of addresses
  std::vector<std::uint64_t> offsets_;               // by buffer
  std::vector<std::uint64_t> answered_;              // by request: the last step that matched it
  std::vector<std::unique_ptr<plan_arena>> arenas_;  // the current one last; others are in use
  std::vector<pending> pending_;
  std::uint64_t most_ = 0;  // bytes that the pool holds if the step goes as planned
};

}  // namespace velo::memory
