// Memory pools: they reuse freed blocks without asking the system each time.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/history.h"
#include "velo/stream.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_pool {
  static void call(velo_pool pool) noexcept { VELO_FN(pool_destroy)(pool); }
};
}  // namespace detail

// Owns a pool, which must outlive the contexts that use its allocator.
class pool : public detail::owner<velo_pool, detail::destroy_pool> {
 public:
  // A pool with all defaults, or as described.
  static outcome<pool> create() { return create_from(nullptr); }
  static outcome<pool> create(const velo_pool_desc& desc) { return create_from(&desc); }

  operator velo_pool() const noexcept { return get(); }

  // Allocates a block as requested; free() frees it.
  outcome<void*> allocate(const velo_pool_request& request) const {
    void* memory = nullptr;
    const velo_status status = VELO_FN(pool_allocate)(get(), &request, &memory);
    return detail::finish<void*>(status, memory);
  }
  // The same for `bytes` bytes. stream: the stream whose queued work uses them; none: the host's
  // own work.
  outcome<void*> allocate(uint64_t bytes, stream_ref stream = {}) const {
    velo_pool_request request = {};
    request.struct_size = sizeof request;
    request.bytes = bytes;
    request.stream = stream.get();
    return allocate(request);
  }

  // Frees a block. stream: the stream whose queued work may still use it.
  outcome<> free(void* memory, uint64_t bytes, stream_ref stream = {}) const {
    return detail::check(VELO_FN(pool_free)(get(), memory, bytes, stream.get()));
  }

  // Releases memory of free blocks to the system until at most `keep` bytes are left; returns the
  // released bytes.
  outcome<uint64_t> trim(uint64_t keep = 0) const {
    uint64_t released = 0;
    const velo_status status = VELO_FN(pool_trim)(get(), keep, &released);
    return detail::finish<uint64_t>(status, released);
  }

  // Limits the bytes that the pool may reserve; 0: no limit.
  outcome<> set_limit(uint64_t bytes) const {
    return detail::check(VELO_FN(pool_set_limit)(get(), bytes));
  }

  // The allocator struct that velo_context_desc takes.
  outcome<velo_allocator> allocator() const {
    velo_allocator made = {};
    made.struct_size = sizeof made;
    const velo_status status = VELO_FN(pool_allocator)(get(), &made);
    return detail::finish<velo_allocator>(status, made);
  }

  // The pool as two plain functions, valid as long as the pool.
  struct functions {
    void* (*allocate)(int64_t bytes, int32_t device, void* stream);
    void (*deallocate)(void* memory, int64_t bytes, int32_t device, void* stream);
  };
  outcome<functions> plain_functions() const {
    void *allocate = nullptr, *deallocate = nullptr;
    const velo_status status = VELO_FN(pool_functions)(get(), &allocate, &deallocate);
    functions made = {};
    made.allocate = reinterpret_cast<void* (*)(int64_t, int32_t, void*)>(allocate);
    made.deallocate = reinterpret_cast<void (*)(void*, int64_t, int32_t, void*)>(deallocate);
    return detail::finish<functions>(status, made);
  }

  // Reports the first damaged block of a checked pool.
  outcome<> check() const { return detail::check(VELO_FN(pool_check)(get())); }

  // A block's location in a shared pool: the pool's file, and the offset in that file.
  struct place {
    int32_t file;
    uint64_t offset;
  };
  outcome<place> locate(const void* memory) const {
    place found = {};
    const velo_status status = VELO_FN(pool_locate)(get(), memory, &found.file, &found.offset);
    return detail::finish<place>(status, found);
  }

  // Counters.
  outcome<velo_pool_stats> stats() const {
    velo_pool_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(pool_get_stats)(get(), &stats);
    return detail::finish<velo_pool_stats>(status, stats);
  }

  // Memory held for one stream; without a stream: for the order of the host's calls.
  outcome<velo_pool_stream_stats> stats_of(stream_ref stream) const {
    velo_pool_stream_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(pool_get_stream_stats)(get(), stream.get(), &stats);
    return detail::finish<velo_pool_stream_stats>(status, stats);
  }

  // Restarts the history with room for the last `events` events; 0 stops it.
  outcome<> record(uint64_t events) const {
    return detail::check(VELO_FN(pool_record)(get(), events));
  }

  // Adds a note to the history, on everything that follows or on a block.
  outcome<> note(const char* text) const { return note(nullptr, text); }
  outcome<> note(const void* memory, const char* text) const {
    return detail::check(VELO_FN(pool_note)(get(), memory, text));
  }

  // The pool's current state, as a text of the caller's string type:
  // snapshot<std::string>(VELO_SNAPSHOT_JSON).
  template <class String>
  outcome<String> snapshot(velo_snapshot_format format) const {
    uint64_t needed = 0;
    String out;
    velo_status status = VELO_FN(pool_snapshot)(get(), format, nullptr, 0, &needed);
    while (status == VELO_OK && needed > out.size()) {  // the pool may have grown
      out.resize(needed);
      status = VELO_FN(pool_snapshot)(get(), format, &out[0], out.size(), &needed);
    }
    out.resize(status == VELO_OK ? needed - 1 : 0);
    return detail::finish<String>(status, std::move(out));
  }

  // Writes the same to a file, completely or not at all.
  outcome<> save(velo_snapshot_format format, const char* path) const {
    return detail::check(VELO_FN(pool_save)(get(), format, path));
  }

 private:
  static outcome<pool> create_from(const velo_pool_desc* desc) {
    velo_pool handle = nullptr;
    const velo_status status = VELO_FN(pool_create)(desc, &handle);
    pool made;
    made.reset(handle);
    return detail::finish<pool>(status, std::move(made));
  }
};

static_assert(sizeof(pool) == sizeof(void*));

VELO_CPP_END
