// The failure that a check throws: REQUIREs the code and returns the facts.
#pragma once

#include <catch2/catch.hpp>

#include "core/failure.hpp"

namespace velo::testing {

template <class F>
core::failure failure_of(F&& body) {
  try {
    body();
  } catch (const core::failure& thrown) {
    return thrown;
  }
  FAIL("nothing was thrown");
  return {};
}

}  // namespace velo::testing
