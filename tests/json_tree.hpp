// JSON read by jansson that frees itself.
#pragma once

#include <jansson.h>

#include <memory>
#include <string>

namespace velo::testing {

struct json_release {
  void operator()(json_t* one) const { json_decref(one); }
};
using json_tree = std::unique_ptr<json_t, json_release>;

// The string of a key, empty where there is none.
inline std::string text_in(const json_t* of, const char* key) {
  const char* text = json_string_value(json_object_get(of, key));
  return text == nullptr ? "" : text;
}

// The object of a list whose "name" is this; NULL where there is none.
inline const json_t* item_named(const json_t* list, const std::string& name) {
  for (std::size_t i = 0; i < json_array_size(list); ++i)
    if (text_in(json_array_get(list, i), "name") == name) return json_array_get(list, i);
  return nullptr;
}

}  // namespace velo::testing
