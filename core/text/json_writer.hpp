// Writes JSON piece by piece: the writer adds commas, colons, quotes and escapes, and closes what
// was opened.
//
// It keeps only the text itself and a character for each open object or array. Callers close
// everything that they open. Not hot.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "core/text/text.hpp"

namespace velo::core {

class json_writer {
 public:
  enum class spacing { none, wide };  // {"a":1,"b":2} or {"a": 1, "b": 2}

  // Appends to a text.
  explicit json_writer(std::string& to, spacing style = spacing::none)
      : to_(to), wide_(style == spacing::wide) {}

  json_writer& object() { return open('{', '}'); }
  json_writer& array() { return open('[', ']'); }
  json_writer& end();  // closes the innermost object or array

  json_writer& key(const char* name);
  json_writer& null() { return raw("null"); }
  json_writer& value(const char* string);  // quoted and escaped; nullptr: null
  json_writer& value(const std::string& string) { return value(string.c_str()); }
  json_writer& value(const text& string) { return value(string.buffer); }
  json_writer& value(bool yes) { return raw(yes ? "true" : "false"); }
  json_writer& value(double number);  // with the fewest digits that give it exactly
  json_writer& value(double number, int digits);
  template <class Int, std::enable_if_t<std::is_integral_v<Int>, int> = 0>
  json_writer& value(Int whole) {
    return raw(number(whole));
  }
  json_writer& raw(const char* json);  // a value that already is JSON
  json_writer& raw(const std::string& json) { return raw(json.c_str()); }

  template <class Value>
  json_writer& member(const char* name, const Value& of) {
    return key(name).value(of);
  }

  // Puts the next element or end on a new line, after a comma if it needs one.
  json_writer& line(const char* indent = "");
  // The same if an element precedes it.
  json_writer& next_line(const char* indent = "") { return comma_ ? line(indent) : *this; }

 private:
  json_writer& open(char begin, char close);
  void separate();  // writes the comma and space before a key or an element

  std::string& to_;
  std::string open_;  // the closing brackets of all open objects and arrays
  const char* indent_ = nullptr;
  const bool wide_;
  bool comma_ = false;  // an element precedes the next one
};

// Appends a number with the fewest digits that give it exactly.
void append_number(std::string& to, double value);

// Appends a text as a JSON string, quoted and escaped; invalid UTF-8 bytes become question marks.
void append_json_string(std::string& to, const char* text);

}  // namespace velo::core
