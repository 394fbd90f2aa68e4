// The record of the failure that a check throws.
#pragma once

#include <catch2/catch.hpp>

#include "core/failure.hpp"
#include "tests/record.hpp"

namespace velo::testing {

// Its code is VELO_OK if nothing is thrown.
template <class F>
call_record thrown_by(F&& body) {
  try {
    body();
  } catch (const core::failure& f) {
    return {f.code, f.rank, f.function, f.argument, f.expected, f.got, f.cause};
  }
  return {};
}

template <class F>
call_record failure_of(F&& body) {
  call_record thrown = thrown_by(body);
  if (thrown.code == VELO_OK) FAIL("nothing was thrown");
  return thrown;
}

}  // namespace velo::testing
