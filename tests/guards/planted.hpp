// Included before every C entry compiled for this test: each call of the guard first throws what
// the test has planted, from where the entry's own work would throw. The guard itself is the
// library's.
#pragma once

#include <type_traits>

#include "core/handle/guard.hpp"

namespace velo::core {

void throw_planted();  // guards_test.cpp; returns when nothing is planted

template <class F, class... Kind>
velo_status guard_with_fault(const char* function, F&& body, Kind... kind) noexcept {
  if constexpr (std::is_invocable_v<F&, const inside_scope&>)
    return guard(function, [&](const inside_scope& here) {
      throw_planted();
      body(here);
    });
  else
    return guard(
        function,
        [&] {
          throw_planted();
          body();
        },
        kind...);
}

}  // namespace velo::core

#define guard guard_with_fault
