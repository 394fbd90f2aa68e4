// Shared by the tests of snapshots: a snapshot as JSON, read back.
#pragma once

#include <jansson.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/memory/pool/pools.hpp"

namespace velo::testing {

// A snapshot of any form, as bytes.
inline std::string snapshot_of(velo_pool pool, velo_snapshot_format format) {
  std::uint64_t needed = 0;
  REQUIRE(velo_pool_snapshot(pool, format, nullptr, 0, &needed) == VELO_OK);
  std::string out;
  do {  // it grows while other threads use the pool
    out.assign(2 * needed + 4096, 'x');
    REQUIRE(velo_pool_snapshot(pool, format, out.data(), out.size(), &needed) == VELO_OK);
  } while (needed > out.size());
  CHECK(out[needed - 1] == 0);
  out.resize(needed - 1);
  return out;
}

inline std::vector<const json_t*> items(const json_t* list) {
  REQUIRE(json_is_array(list));
  std::vector<const json_t*> all;
  for (std::size_t i = 0; i < json_array_size(list); ++i) all.push_back(json_array_get(list, i));
  return all;
}
inline std::uint64_t number(const json_t* of, const char* key) {
  CAPTURE(key);
  REQUIRE(json_is_integer(json_object_get(of, key)));
  return static_cast<std::uint64_t>(json_integer_value(json_object_get(of, key)));
}
inline std::string string(const json_t* of, const char* key) {
  CAPTURE(key);
  REQUIRE(json_is_string(json_object_get(of, key)));
  return json_string_value(json_object_get(of, key));
}

struct parsed {
  json_t* all = nullptr;

  explicit parsed(velo_pool pool) : parsed(snapshot_of(pool, VELO_SNAPSHOT_JSON)) {}
  explicit parsed(const std::string& text) {
    json_error_t error;
    all = json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error);
    INFO(error.text);
    REQUIRE(all != nullptr);
  }
  ~parsed() { json_decref(all); }
  parsed(const parsed&) = delete;
  parsed& operator=(const parsed&) = delete;

  std::vector<const json_t*> list(const char* key) const {
    return items(json_object_get(all, key));
  }
  // The history, without the entry of the snapshot itself, which ends it.
  std::vector<const json_t*> trace() const {
    std::vector<const json_t*> entries = items(list("device_traces").at(0));
    REQUIRE(string(entries.back(), "action") == "snapshot");
    entries.pop_back();
    return entries;
  }
  std::vector<std::string> actions() const {
    std::vector<std::string> all_actions;
    for (const json_t* entry : trace()) all_actions.push_back(string(entry, "action"));
    return all_actions;
  }
};

}  // namespace velo::testing
