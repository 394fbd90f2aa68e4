// JSON written piece by piece: the writer sets commas, colons, quotes and escapes, and closes what
// was opened, so that no caller counts them.
//
// Nothing is kept but the text itself and a character for each open object or array. Callers close
// all that they open. Not hot.
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
  json_writer& end();  // of the innermost object or array

  json_writer& key(const char* name);
  json_writer& null() { return raw("null"); }
  json_writer& value(const char* string);  // quoted and escaped; nullptr: null
  json_writer& value(const std::string& string) { return value(string.c_str()); }
  json_writer& value(const text& string) { return value(string.buffer); }
  json_writer& value(bool yes) { return raw(yes ? "true" : "false"); }
  json_writer& value(double number);  // as few digits as say it exactly
  json_writer& value(double number, int digits);
  template <class Int, std::enable_if_t<std::is_integral_v<Int>, int> = 0>
  json_writer& value(Int whole) {
    return raw(number(whole));
  }
  json_writer& raw(const char* json);  // a value that is JSON already
  json_writer& raw(const std::string& json) { return raw(json.c_str()); }

  template <class Value>
  json_writer& member(const char* name, const Value& of) {
    return key(name).value(of);
  }

  // The next element or end begins on a new line, after the comma if it needs one.
  json_writer& line(const char* indent = "");
  // The same if an element stands before it.
  json_writer& next_line(const char* indent = "") { return comma_ ? line(indent) : *this; }

 private:
  json_writer& open(char begin, char close);
  void separate();  // what stands before a key or an element

  std::string& to_;
  std::string open_;  // the ends of what is open
  const char* indent_ = nullptr;
  const bool wide_;
  bool comma_ = false;  // an element stands before the next one
};

// Appends a number with as few digits as say it exactly.
void append_number(std::string& to, double value);

// Appends a text as a JSON string, quoted and escaped; bytes that are not UTF-8 as question marks.
void append_json_string(std::string& to, const char* text);

}  // namespace velo::core
