// Included before every C entry compiled for this test: each call of the guard first throws what
// the test has planted, from where the entry's own work would throw. The guard itself is the
// library's.
#pragma once

#include "core/guard.hpp"

namespace velo::core {

void throw_planted();  // guards_test.cpp; returns when nothing is planted

template <class F, class... Kind>
velo_status guard_with_fault(const char* function, F&& body, Kind... kind) noexcept {
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
