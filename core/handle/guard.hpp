// The C boundary, which no exception crosses. Every exported function runs its body inside guard(),
// which turns any exception (a failure, bad_alloc, any std::exception, an int from a host callback)
// into a status and the thread's error record.
//
// A success leaves the record alone. The objects that an entry is given count as in use until its
// guard ends (inside.hpp). Cost on success: an `uncancelled` and a scope.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/handle/host_call.hpp"
#include "core/handle/inside.hpp"
#include "core/handle/record.hpp"

namespace velo::core {

// A struct of a caller whose struct_size is larger is refused before anything else of it is read.
inline constexpr std::uint32_t max_struct_size = 4096;

// Records the exception in flight under the function's name and returns its code.
inline velo_status record_current(const char* function) noexcept {
  const failure what = current_failure();
  write_record(function, what);
  return what.code;
}

// of_operator: an entry of operators or of memory. It holds neither an `uncancelled` nor a scope,
// which would cost a tenth of its time (host_call.hpp); functions of the host that it calls hold
// them.
struct of_operator {};
template <class F>
velo_status guard(const char* function, F&& body, of_operator) noexcept {
  try {
    body();
    return VELO_OK;
  } catch (...) {
    return record_current(function);
  }
}

// Calls body(), or body(scope) if it takes the scope, which spares very short entries a second
// look-up of the thread's list of objects in use.
template <class F>
velo_status guard(const char* function, F&& body) noexcept {
  const uncancelled here;
  const inside_scope mine;
  if constexpr (std::is_invocable_v<F&, const inside_scope&>)
    return guard(
        function, [&] { body(mine); }, of_operator{});
  else
    return guard(function, std::forward<F>(body), of_operator{});
}

}  // namespace velo::core
