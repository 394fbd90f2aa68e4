// The library's description of itself, as JSON.
#pragma once

#include <catch2/catch.hpp>

#include "tests/capi/values.hpp"
#include "tests/json_tree.hpp"

namespace velo::testing {

inline json_tree library_description() {
  json_tree root(json_loads(text(velo_describe).c_str(), 0, nullptr));
  REQUIRE(root != nullptr);
  return root;
}

}  // namespace velo::testing
