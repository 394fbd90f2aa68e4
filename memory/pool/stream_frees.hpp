// Pending blocks: freed on streams that have not reached the point of the free yet.
//
// Freeing on a queued stream puts a point behind all work submitted to it so far. Until the stream
// passes the point, the block serves only requests on the same stream, whose work runs after the
// free; then it serves all. Points of a stream pass in order, so that each stream has one list,
// emptied from its front. Streams are identified by their handles, which are never reused: a stream
// that was destroyed has passed all its points. Not thread-safe. Cost of a free: a marker in the
// stream's queue.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>

#include "core/stream/event.hpp"
#include "core/stream/stream.hpp"
#include "memory/pool/heap/block.hpp"
#include "memory/pool/heap/free_index.hpp"

namespace velo::memory {

// The stream of a handle if work may be queued on it; nullptr for NULL and for an inline stream,
// whose work is done when its calls return. Throws as core::resolve does.
inline core::stream* queued_stream(velo_stream handle, const char* argument) {
  if (handle == nullptr) return nullptr;
  auto& given = core::resolve<core::stream>(handle, argument);
  return given.is_inline() ? nullptr : &given;
}

class stream_frees {
 public:
  // Puts the block, still in use, behind the stream's work and makes it pending. False: the stream
  // has failed and runs nothing any more, so the block may go to the heap at once. Throws FULL and
  // MEMORY, and then the block is in use as before.
  bool add(block& freed, core::stream& on, velo_stream handle);

  // Takes a pending block of that stream for its next work, at most an eighth larger than `size`;
  // nullptr: there is none. Blocks lie at offsets from `base`, which is aligned to pages only.
  block* take(velo_stream on, std::uint64_t size, std::uint64_t alignment,
              const char* base) noexcept;

  // Removes each block whose point has passed and calls f(block&).
  template <class F>
  void collect(F&& f) {
    for (auto q = queues_.begin(); q != queues_.end();) {
      while (!q->entries.empty() &&
             (q->entries.front().what == nullptr || q->entries.front().until->passed())) {
        if (block* b = q->entries.front().what) {
          q->ready.remove(*b);
          bytes_ -= b->size;
          f(*b);
        }
        q->entries.pop_front();
        ++q->first;
      }
      q = q->entries.empty() ? queues_.erase(q) : std::next(q);
    }
  }

  bool empty() const noexcept { return queues_.empty(); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t bytes(velo_stream on) const noexcept;
  std::shared_ptr<core::point> next_to_pass() const;  // of some stream; nullptr: none

 private:
  struct entry {
    std::shared_ptr<core::point> until;
    block* what;  // nullptr: used again by the stream itself
  };
  struct queue {
    velo_stream on;
    std::deque<entry> entries;
    std::uint64_t first = 0;  // the number of the first entry; blocks hold numbers
    free_index ready;
  };

  std::list<queue> queues_;
  std::uint64_t bytes_ = 0;
};

}  // namespace velo::memory
