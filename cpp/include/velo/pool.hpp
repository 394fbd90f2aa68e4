// Memory pools: blocks of memory given and taken back without asking the system each time.
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

// Owns a pool; it must outlive the contexts that were given its allocator.
class pool : public detail::owner<velo_pool, detail::destroy_pool> {
 public:
  // A pool with all defaults, or with those of the description that the caller set.
  static outcome<pool> create() { return create_from(nullptr); }
  static outcome<pool> create(const velo_pool_desc& desc) { return create_from(&desc); }

  operator velo_pool() const noexcept { return get(); }

  // A block as requested. Give it back with free.
  outcome<void*> allocate(const velo_pool_request& request) const {
    void* memory = nullptr;
    const velo_status status = VELO_FN(pool_allocate)(get(), &request, &memory);
    return detail::finish<void*>(status, memory);
  }
  // The same for `bytes` bytes; stream: whose queued work uses them, none for the host's own.
  outcome<void*> allocate(uint64_t bytes, stream_ref stream = {}) const {
    velo_pool_request request = {};
    request.struct_size = sizeof request;
    request.bytes = bytes;
    request.stream = stream.get();
    return allocate(request);
  }

  // Takes a block back; stream: whose queued work may still use it.
  outcome<> free(void* memory, uint64_t bytes, stream_ref stream = {}) const {
    return detail::check(VELO_FN(pool_free)(get(), memory, bytes, stream.get()));
  }

  // Lets memory of free blocks go until no more than `keep` bytes are left; gives how much that
  // was.
  outcome<uint64_t> trim(uint64_t keep = 0) const {
    uint64_t released = 0;
    const velo_status status = VELO_FN(pool_trim)(get(), keep, &released);
    return detail::finish<uint64_t>(status, released);
  }

  // The most bytes it may reserve, 0 for no limit.
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

  // The pool as two plain functions; they end with it.
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

  // A block's place in a shared pool: the pool's file, and the offset in it.
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

  // Memory that it holds for one stream; no stream: in the order of the host's calls.
  outcome<velo_pool_stream_stats> stats_of(stream_ref stream) const {
    velo_pool_stream_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(pool_get_stream_stats)(get(), stream.get(), &stats);
    return detail::finish<velo_pool_stream_stats>(status, stats);
  }

  // Starts its history afresh, of the last so many events; 0 stops it.
  outcome<> record(uint64_t events) const {
    return detail::check(VELO_FN(pool_record)(get(), events));
  }

  // Says something in the history: of all that follows, or of a block.
  outcome<> note(const char* text) const { return note(nullptr, text); }
  outcome<> note(const void* memory, const char* text) const {
    return detail::check(VELO_FN(pool_note)(get(), memory, text));
  }

  // The pool as it is, as a text of the caller's string type:
  // snapshot<std::string>(VELO_SNAPSHOT_JSON).
  template <class String>
  outcome<String> snapshot(velo_snapshot_format format) const {
    uint64_t needed = 0;
    String out;
    velo_status status = VELO_FN(pool_snapshot)(get(), format, nullptr, 0, &needed);
    while (status == VELO_OK && needed > out.size()) {  // it may have grown
      out.resize(needed);
      status = VELO_FN(pool_snapshot)(get(), format, &out[0], out.size(), &needed);
    }
    out.resize(status == VELO_OK ? needed - 1 : 0);
    return detail::finish<String>(status, std::move(out));
  }

  // The same into a file, which is there whole or not at all.
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
