// The move-only owner of one C handle, one pointer wide: the base of every owning class of the C++
// layer.
//
// Release names the C destroy function as a static member function. An empty owner holds a null
// handle; a call with it fails with the library's own "is NULL" error and never has undefined
// behavior.
#pragma once

#include <utility>

#include "velo/detail/mode.hpp"

VELO_CPP_BEGIN
namespace detail {

template <class Handle, class Release>
class owner {
 public:
  owner() noexcept = default;
  owner(owner&& other) noexcept : handle_(other.release()) {}
  owner& operator=(owner&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  owner(const owner&) = delete;
  owner& operator=(const owner&) = delete;
  ~owner() { reset(); }

  // The C handle; this object still owns it.
  Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  // Returns the handle and gives up its ownership.
  Handle release() noexcept { return std::exchange(handle_, nullptr); }

  // Destroys the held handle and takes another.
  void reset(Handle handle = nullptr) noexcept {
    Handle old = std::exchange(handle_, handle);
    if (old != nullptr) Release::call(old);
  }

 private:
  Handle handle_ = nullptr;
};

}  // namespace detail
VELO_CPP_END
