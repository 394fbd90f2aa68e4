// A piece of queued work and its recycled memory.
//
// Work that computes holds the context's turn, threads and scratch memory. Work that waits (for a
// peer, a file, an event) holds none of them, so that computing work continues meanwhile. A pool
// reuses the memory of finished work, so a stream in its steady state allocates nothing. Making a
// piece of work costs a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "core/stream/execution.hpp"

namespace velo::core {

class work_pool;

enum class demand { computes, waits };

struct work {
  explicit work(demand what = demand::computes) noexcept : what(what) {}
  work(const work&) = delete;
  work& operator=(const work&) = delete;
  virtual ~work() = default;

  // Work that waits gets one thread and the lane's scratch memory.
  virtual void run(execution& state) = 0;
  virtual void skip() noexcept {}  // called instead of run() after an earlier failure of the lane

  const demand what;
  const char* function = "";  // static: the C function that queued it, for the record of a failure

 private:
  friend class work_pool;
  friend class lane;
  friend struct work_deleter;
  work* next_ = nullptr;
  std::uint64_t submitted_ = 0;  // ticks, where waits are profiled
  work_pool* home_ = nullptr;    // nullptr: too large for a pool
  void* block_ = nullptr;
};

struct work_deleter {
  void operator()(work* piece) const noexcept;
};
template <class W>
using work_ptr = std::unique_ptr<W, work_deleter>;

// A pool of blocks of one size. Thread-safe; must outlive the work made from it.
class work_pool {
 public:
  static constexpr std::size_t block_bytes = 4096;
  static constexpr int most_kept = 1024;  // more free blocks than this are freed

  work_pool() = default;
  ~work_pool();
  work_pool(const work_pool&) = delete;
  work_pool& operator=(const work_pool&) = delete;

  template <class W, class... Args>
  work_ptr<W> make(Args&&... args) {
    return make_before<W>(0, std::forward<Args>(args)...);
  }

  // Makes a W with `bytes` more bytes behind it, which its constructor finds at this + 1.
  template <class W, class... Args>
  work_ptr<W> make_before(std::size_t bytes, Args&&... args) {
    static_assert(alignof(W) <= alignof(std::max_align_t));
    const bool fits = sizeof(W) + bytes <= block_bytes;
    void* block = fits ? take() : ::operator new(sizeof(W) + bytes);
    W* made = nullptr;
    try {
      made = new (block) W(std::forward<Args>(args)...);
    } catch (...) {
      fits ? give(block) : ::operator delete(block);
      throw;
    }
    work& piece = *made;  // since W may hide members of work
    piece.home_ = fits ? this : nullptr;
    piece.block_ = block;
    return work_ptr<W>(made);
  }

 private:
  friend struct work_deleter;
  struct free_block {
    free_block* next;
  };

  void* take();  // throws bad_alloc
  void give(void* block) noexcept;

  std::mutex lock_;
  free_block* free_ = nullptr;
  int kept_ = 0;
};

}  // namespace velo::core
