// Descriptions of groups as JSON.
#pragma once

#include <jansson.h>

#include <catch2/catch.hpp>
#include <string>

namespace velo::testing {

struct json {
  explicit json(const std::string& text) : root(json_loads(text.c_str(), 0, nullptr)) {
    REQUIRE(root != nullptr);
  }
  ~json() { json_decref(root); }
  json(const json&) = delete;
  json_t* root;
};

inline std::string text_of(json_t* object, const char* key) {
  const char* text = json_string_value(json_object_get(object, key));
  return text != nullptr ? text : "";
}
inline std::int64_t number_of(json_t* object, const char* key) {
  return json_integer_value(json_object_get(object, key));
}

}  // namespace velo::testing
