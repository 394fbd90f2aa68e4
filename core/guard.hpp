// The C boundary: no exception leaves. Every exported function runs its body inside guard(), which
// turns whatever is thrown (a failure, bad_alloc, any std::exception, an int from a host callback)
// into a status and the thread's error record.
//
// A success leaves the record alone. Cost on success: none beyond the call.
#pragma once

#include "core/record.hpp"

namespace velo::core {

// Records the exception in flight under a function's name and returns its code.
inline velo_status record_current(const char* function) noexcept {
  const failure what = current_failure();
  write_record(function, what);
  return what.code;
}

template <class F>
velo_status guard(const char* function, F&& body) noexcept {
  try {
    body();
    return VELO_OK;
  } catch (...) {
    return record_current(function);
  }
}

}  // namespace velo::core
