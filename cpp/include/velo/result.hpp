// velo::result<T>: a status and, if that is VELO_OK, a value. Every call returns it if exceptions
// are off.
//
// It adds one integer to the value. It holds no copy of the error record: error() reads the calling
// thread's record, so call it before the next failing call of that thread.
#pragma once

#include <utility>

#include "velo/detail/mode.hpp"
#include "velo/error.hpp"
#include "velo/status.h"

VELO_CPP_BEGIN

template <class T>
class [[nodiscard]] result {
 public:
  result(velo_status status, T value) noexcept : value_(std::move(value)), status_(status) {}

  bool ok() const noexcept { return status_ == VELO_OK; }
  explicit operator bool() const noexcept { return ok(); }
  velo_status status() const noexcept { return status_; }
  velo::error error() const noexcept { return velo::error::last(status_); }

  // The value; after a failure, the empty or zero value of its type.
  T& value() & noexcept { return value_; }
  const T& value() const& noexcept { return value_; }
  T&& value() && noexcept { return std::move(value_); }
  T& operator*() & noexcept { return value_; }
  T&& operator*() && noexcept { return std::move(value_); }
  T* operator->() noexcept { return &value_; }

 private:
  T value_;
  velo_status status_;
};

template <>
class [[nodiscard]] result<void> {
 public:
  explicit result(velo_status status) noexcept : status_(status) {}

  bool ok() const noexcept { return status_ == VELO_OK; }
  explicit operator bool() const noexcept { return ok(); }
  velo_status status() const noexcept { return status_; }
  velo::error error() const noexcept { return velo::error::last(status_); }

 private:
  velo_status status_;
};

VELO_CPP_END
