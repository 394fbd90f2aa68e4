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

}  // namespace velo::testing
