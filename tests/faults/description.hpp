// The library's description of itself, as JSON.
#pragma once

#include <jansson.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "tests/capi/values.hpp"

namespace velo::testing {

struct json_release {
  void operator()(json_t* one) const { json_decref(one); }
};
using json_tree = std::unique_ptr<json_t, json_release>;

inline json_tree library_description() {
  json_tree root(json_loads(text(velo_describe).c_str(), 0, nullptr));
  REQUIRE(root != nullptr);
  return root;
}

inline std::string text_in(const json_t* of, const char* key) {
  return json_string_value(json_object_get(of, key));
}

}  // namespace velo::testing
