// How the C++ layer calls the C functions, and how a status becomes an outcome. All other headers,
// written by hand or generated, use only these three names:
//
//   VELO_FN(rms_norm)(..)             the C function velo_rms_norm: the linked symbol, or the slot
//                                     of the loaded table
//   detail::check(status)             an outcome<void>: nothing or a throw, or a result<void>
//                                     without exceptions
//   detail::finish<T>(status, value)  an outcome<T> in the same way
//
// The cost is the C call and one test of its status; the code that throws is out of line.
#pragma once

#include <utility>

#include "velo/detail/mode.hpp"
#include "velo/error.hpp"
#include "velo/result.hpp"
#include "velo/status.h"

VELO_CPP_BEGIN

// The result of a call of the C++ layer: T, or result<T> without exceptions.
#ifdef VELO_NO_EXCEPTIONS
template <class T = void>
using outcome = result<T>;
#else
template <class T = void>
using outcome = T;
#endif

namespace detail {

#ifdef VELO_NO_EXCEPTIONS

inline outcome<> check(velo_status status) noexcept {
  return result<void>(status);
}

template <class T>
outcome<T> finish(velo_status status, T value) noexcept {
  return result<T>(status, std::move(value));
}

#else

[[noreturn]] __attribute__((cold, noinline)) inline void raise(velo_status status) {
  throw error::last(status);
}

inline outcome<> check(velo_status status) {
  if (__builtin_expect(status != VELO_OK, 0)) raise(status);
}

template <class T>
outcome<T> finish(velo_status status, T value) {
  if (__builtin_expect(status != VELO_OK, 0)) raise(status);
  return value;
}

#endif

// Calls a text function (buffer, capacity, needed), first for the size, and returns the text in any
// string type with resize() and operator[]. So std::string works without this header including it.
template <class String, class Call>
outcome<String> text(Call call) {
  uint64_t needed = 0;
  velo_status status = call(nullptr, 0, &needed);
  String out;
  if (status == VELO_OK && needed > 0) {
    out.resize(needed);
    status = call(&out[0], needed, &needed);
    out.resize(status == VELO_OK ? needed - 1 : 0);
  }
  return finish<String>(status, std::move(out));
}

}  // namespace detail

VELO_CPP_END
