// Foreign kernels and plugins in velo, and operators as C function pointers.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/plugin.h"
#include "velo/stream.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_kernel {
  static void call(velo_kernel kernel) noexcept { VELO_FN(kernel_destroy)(kernel); }
};
struct destroy_closure {
  static void call(velo_closure closure) noexcept { VELO_FN(closure_destroy)(closure); }
};
}  // namespace detail

// A C function of a foreign library, registered as an operator of one context during the lifetime
// of this object.
class kernel : public detail::owner<velo_kernel, detail::destroy_kernel> {
 public:
  static outcome<kernel> create(velo_context context, const velo_kernel_desc& desc) {
    velo_kernel handle = nullptr;
    const velo_status status = VELO_FN(kernel_register)(context, &desc, &handle);
    kernel made;
    made.reset(handle);
    return detail::finish<kernel>(status, std::move(made));
  }
};

// An operator as a C function pointer, valid as long as the closure lives. Only create() returns
// the pointer, so the owner stays one handle wide.
class closure : public detail::owner<velo_closure, detail::destroy_closure> {
 public:
  static outcome<closure> create(stream_ref stream, const char* op, const char* fields,
                                 void** function) {
    velo_closure handle = nullptr;
    const velo_status status = VELO_FN(closure_create)(stream.get(), op, fields, function, &handle);
    closure made;
    made.reset(handle);
    return detail::finish<closure>(status, std::move(made));
  }
};

// Opens a plugin library and registers all its kernels in the context, or none of them.
inline outcome<> plugin_load(velo_context context, const char* path) {
  return detail::check(VELO_FN(plugin_load)(context, path));
}

// The context's foreign kernels and the files that contain them, as JSON.
template <class String>
outcome<String> kernel_list(velo_context context) {
  return detail::text<String>([context](char* buffer, uint64_t capacity, uint64_t* needed) {
    return VELO_FN(kernel_list)(context, buffer, capacity, needed);
  });
}

static_assert(sizeof(kernel) == sizeof(void*) && sizeof(closure) == sizeof(void*));

VELO_CPP_END
