// Loading with dlopen: a program that is not linked to velo opens the library itself.
//
//   #define VELO_DYNAMIC            (before any velo header, or -DVELO_DYNAMIC)
//   velo::load("libvelo.so.1");     everything else is written as in a linked program
//
// load refuses a library older than VELO_TARGET_ABI before it uses anything else of it. The library
// is never unloaded. Without VELO_DYNAMIC this header declares nothing.
#pragma once

#include "velo/detail/mode.hpp"

#ifdef VELO_DYNAMIC

#include <dlfcn.h>

#include <cstddef>

#include "velo/api.h"
#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/introspect.h"

VELO_CPP_BEGIN

namespace detail {

// Cuts the text to the buffer, which always ends with a zero byte.
template <std::size_t Capacity>
void put_text(char (&to)[Capacity], const char* text) noexcept {
  std::size_t length = 0;
  for (; length + 1 < Capacity && text[length] != 0; ++length) to[length] = text[length];
  to[length] = 0;
}

// Records why load failed, for error::last while no library is loaded.
inline velo_status load_failed(velo_status code, const char* path, const char* cause) noexcept {
  velo_error_info info = VELO_ERROR_INFO_INIT;
  info.code = code;
  info.rank = -1;
  put_text(info.function, "velo::load");
  put_text(info.argument, "path");
  put_text(info.expected, "a libvelo.so that opens");
  put_text(info.got, path != nullptr ? path : "NULL");
  put_text(info.cause, cause != nullptr ? cause : "");
  error::load_failure().fill(info, cause);
  return code;
}

// Records the library's own reason for its refusal, which names both versions and its path.
inline velo_status load_refused(velo_status code, const char* path, void* library) noexcept {
  velo_error_info info = VELO_ERROR_INFO_INIT;
  char text[512] = "the library refused the version asked for";
  using last_error_fn = velo_status (*)(velo_error_info*);
  using error_text_fn = velo_status (*)(char*, uint64_t, uint64_t*);
  const auto last = reinterpret_cast<last_error_fn>(dlsym(library, "velo_last_error"));
  const auto sentence = reinterpret_cast<error_text_fn>(dlsym(library, "velo_error_text"));
  if (last == nullptr || sentence == nullptr || last(&info) != VELO_OK)
    return load_failed(code, path, text);
  sentence(text, sizeof text, nullptr);
  error::load_failure().fill(info, text);
  return code;
}

inline velo_status load_status(const char* path) noexcept {
  if (table != nullptr) return VELO_OK;
  if (path == nullptr) return load_failed(VELO_ERR_NULL, path, "path is NULL");
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return load_failed(VELO_ERR_IO, path, dlerror());
  using get_api_fn = velo_status (*)(uint32_t, uint64_t, const velo_api**);
  const auto get_api = reinterpret_cast<get_api_fn>(dlsym(library, "velo_get_api"));
  if (get_api == nullptr) return load_failed(VELO_ERR_NOT_FOUND, path, dlerror());
  const velo_api* found = nullptr;
  const velo_status status = get_api(VELO_TARGET_ABI, sizeof(velo_api), &found);
  if (status != VELO_OK) return load_refused(status, path, library);
  table = found;
  return VELO_OK;
}

}  // namespace detail

// Opens the library and finds its function table. Once is enough; later calls do nothing. Do not
// call it from two threads at once, nor during other calls.
inline outcome<> load(const char* path) {
  return detail::check(detail::load_status(path));
}

// Whether load has succeeded.
inline bool loaded() noexcept {
  return detail::table != nullptr;
}

VELO_CPP_END

#endif
