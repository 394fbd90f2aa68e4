// What every destroy call does: NULL is ignored; what cannot be destroyed is refused, recorded and
// logged, never returned.
#pragma once

#include "core/guard.hpp"
#include "core/handle.hpp"
#include "core/log.hpp"

namespace velo::capi {

template <class T>
void destroy(const char* function, typename core::handle_traits<T>::handle handle,
             const char* argument) noexcept {
  const velo_status status = core::guard(function, [&] {
    if (handle != nullptr) core::destroy_handle<T>(handle, argument);
  });
  if (status != VELO_OK) core::log_misuse(core::last_record());
}

}  // namespace velo::capi
