// The context: threads, memory, configuration and log of one host. Create it first; it must outlive
// all objects made from it.
#pragma once

#include "velo/context.h"
#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/stream.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_context {
  static void call(velo_context context) noexcept { VELO_FN(context_destroy)(context); }
};
}  // namespace detail

class context : public detail::owner<velo_context, detail::destroy_context> {
 public:
  // A context with all defaults, or as described.
  static outcome<context> create() { return create_from(nullptr); }
  static outcome<context> create(const velo_context_desc& desc) { return create_from(&desc); }

  operator velo_context() const noexcept { return get(); }

  // The inline stream, owned by the context. A call on it is finished when it returns.
  outcome<stream_ref> inline_stream() const {
    velo_stream stream = nullptr;
    const velo_status status = VELO_FN(context_stream)(get(), &stream);
    return detail::finish<stream_ref>(status, stream);
  }

  // Sets a configuration key to a text. velo/context.h lists the keys.
  outcome<> set(const char* key, const char* value) {
    return detail::check(VELO_FN(config_set)(get(), key, value));
  }

  // Reads a configuration key into the caller's buffer and returns the required size. origin: set
  // to "default", "code" or "environment".
  outcome<uint64_t> config(const char* key, char* buffer, uint64_t capacity,
                           const char** origin = nullptr) const {
    uint64_t needed = 0;
    const velo_status status = VELO_FN(config_get)(get(), key, buffer, capacity, &needed, origin);
    return detail::finish<uint64_t>(status, needed);
  }

  // The same as a string of the caller's type: config<std::string>("isa").
  template <class String>
  outcome<String> config(const char* key, const char** origin = nullptr) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(config_get)(get(), key, buffer, capacity, needed, origin);
    });
  }

  // All keys as one JSON array.
  template <class String>
  outcome<String> config_list() const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(config_list)(get(), buffer, capacity, needed);
    });
  }

  // Counters: memory held, operators run, threads used.
  outcome<velo_context_stats> stats() const {
    velo_context_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(context_get_stats)(get(), &stats);
    return detail::finish<velo_context_stats>(status, stats);
  }

 private:
  static outcome<context> create_from(const velo_context_desc* desc) {
    velo_context handle = nullptr;
    const velo_status status = VELO_FN(context_create)(desc, &handle);
    context made;
    made.reset(handle);
    return detail::finish<context>(status, std::move(made));
  }
};

static_assert(sizeof(context) == sizeof(void*));

VELO_CPP_END
