// velo::error: the whole error record of a failed call, independent of the thread that failed.
//
// With exceptions, the layer throws it; without, result<T>::error() makes one on request. It holds
// plain characters, about 1.6 KiB, so copying it allocates nothing and cannot fail.
#pragma once

#include "velo/detail/function.hpp"
#include "velo/detail/mode.hpp"
#include "velo/status.h"

#ifndef VELO_NO_EXCEPTIONS
#include <exception>
#elif defined(VELO_DYNAMIC)
#include <cstdio>
#include <cstdlib>
#endif

VELO_CPP_BEGIN

#ifdef VELO_NO_EXCEPTIONS
class error {
#else
class error : public std::exception {
#endif
 public:
  // The record of the calling thread's last failure. status: the status that the call returned,
  // kept even if the record belongs to another call.
  static error last(velo_status status) noexcept {
    error e;
#ifdef VELO_DYNAMIC
    if (detail::table == nullptr) {  // velo::load failed: there is no library to ask
      e = load_failure();
      return e;
    }
#endif
    const bool read = VELO_FN(last_error)(&e.info_) == VELO_OK && e.info_.code == status;
    if (!read) e.info_ = VELO_ERROR_INFO_INIT;
    e.info_.code = status;
    if (!read || VELO_FN(error_text)(e.text_, sizeof e.text_, nullptr) != VELO_OK) {
      const char* name = nullptr;
      if (VELO_FN(status_describe)(status, &name, nullptr) == VELO_OK) e.set_text(name);
    }
    return e;
  }

  // The code: VELO_ERR_SHAPE, ..
  velo_status status() const noexcept {
    return info_.code;
  }
  // The C function that failed: "velo_rms_norm".
  const char* function() const noexcept {
    return info_.function;
  }
  // The argument at fault: "args.gamma"; empty if there is none.
  const char* argument() const noexcept {
    return info_.argument;
  }
  // The expected value, the actual value, and the cause; each may be empty.
  const char* expected() const noexcept {
    return info_.expected;
  }
  const char* got() const noexcept {
    return info_.got;
  }
  const char* cause() const noexcept {
    return info_.cause;
  }
  // The rank at fault; -1 if the failure concerns no rank.
  int rank() const noexcept {
    return info_.rank;
  }
  // The record itself.
  const velo_error_info& info() const noexcept {
    return info_;
  }

  // The record as one sentence.
#ifdef VELO_NO_EXCEPTIONS
  const char* what() const noexcept {
    return text_;
  }
#else
  const char* what() const noexcept override {
    return text_;
  }
#endif

#ifdef VELO_DYNAMIC
  // Why this program's last velo::load failed.
  static error& load_failure() noexcept {
    static error failure;
    return failure;
  }
  void fill(const velo_error_info& info, const char* text) noexcept {
    info_ = info;
    set_text(text);
  }
#endif

 private:
  error() noexcept = default;

  void set_text(const char* from) noexcept {
    unsigned long n = 0;
    for (; from != nullptr && from[n] != 0 && n + 1 < sizeof text_; ++n) text_[n] = from[n];
    text_[n] = 0;
  }

  velo_error_info info_ = VELO_ERROR_INFO_INIT;
  char text_[832] = "";
};

#ifdef VELO_DYNAMIC
namespace detail {
[[noreturn]] __attribute__((cold, noinline)) inline void not_loaded() {
  constexpr const char* text = "velo: expected velo::load before any other call, got none";
#ifdef VELO_NO_EXCEPTIONS
  std::fprintf(stderr, "%s\n", text);
  std::abort();
#else
  velo_error_info info = VELO_ERROR_INFO_INIT;
  info.code = VELO_ERR_STATE;
  info.rank = -1;
  error failure = error::load_failure();
  failure.fill(info, text);
  throw failure;
#endif
}
}  // namespace detail
#endif

VELO_CPP_END
