// A move-only owner of one C handle, one pointer wide: the base of every owning class of
// the C++ layer.
//
// Release names the C destroy function through a static call. An empty owner holds a null handle;
// passing it on gives the library's own "is NULL" error, never undefined behavior.
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

  // The C handle, still owned here.
  Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  // Gives the handle up without destroying it.
  Handle release() noexcept { return std::exchange(handle_, nullptr); }

  // Destroys the handle held and takes another.
  void reset(Handle handle = nullptr) noexcept {
    Handle old = std::exchange(handle_, handle);
    if (old != nullptr) Release::call(old);
  }

 private:
  Handle handle_ = nullptr;
};

}  // namespace detail
VELO_CPP_END
