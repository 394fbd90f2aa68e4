// jansson's nodes with owners, and members read with one call.
#pragma once

#include <jansson.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

namespace command {

struct json_release {
  void operator()(json_t* node) const { json_decref(node); }
};
using json = std::unique_ptr<json_t, json_release>;

inline json parse(const std::string& text) {
  json_error_t error;
  json read(json_loads(text.c_str(), 0, &error));
  if (read == nullptr) throw std::runtime_error(std::string("velo's own JSON: ") + error.text);
  return read;
}

// Why a text could not be read, without the control characters that jansson quotes from it.
inline std::string reason_of(const json_error_t& error) {
  std::string reason = error.text;
  for (char& c : reason)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return reason;
}

inline json_t* member(const json_t* object, const char* name) {
  return json_object_get(object, name);
}
inline std::string text(const json_t* object, const char* name) {
  const char* value = json_string_value(member(object, name));
  return value == nullptr ? "" : value;
}

// Strings of an array, joined.
inline std::string joined(const json_t* array, const char* separator) {
  std::string all;
  for (std::size_t i = 0; i < json_array_size(array); ++i) {
    if (i > 0) all += separator;
    const char* value = json_string_value(json_array_get(array, i));
    all += value == nullptr ? "" : value;
  }
  return all;
}

inline void print(const json_t* node) {
  std::unique_ptr<char, void (*)(void*)> all(
      json_dumps(node, JSON_INDENT(1) | JSON_REAL_PRECISION(6)), &free);
  std::puts(all.get());
}

}  // namespace command
