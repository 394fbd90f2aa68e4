// The steps of every destroy call. It ignores NULL. It refuses a handle that cannot be destroyed,
// and records and logs the refusal but returns nothing. An object in use by an unfinished call of
// the thread cannot be destroyed (core/handle/inside.hpp).
#pragma once

#include "core/context.hpp"
#include "core/handle/guard.hpp"
#include "core/handle/inside.hpp"

namespace velo::capi {

// check(object): throws if this call may not destroy the object.
template <class T, class Check>
void destroy(const char* function, typename core::handle_traits<T>::handle handle,
             const char* argument, Check&& check) noexcept {
  if (handle == nullptr) return;
  const velo_status status = core::guard(function, [&] {
    core::claim<T> mine(handle, argument);
    core::require_outside(handle, argument);
    check(mine.object());
    core::inside_scope::note(handle, core::part::given);
    mine.destroy();
  });
  if (status != VELO_OK) core::log_misuse(handle);
}

template <class T>
void destroy(const char* function, typename core::handle_traits<T>::handle handle,
             const char* argument) noexcept {
  destroy<T>(function, handle, argument, [](T&) {});
}

}  // namespace velo::capi
