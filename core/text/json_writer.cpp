// Commas, quotes and escapes (json_writer.hpp).
#include "core/text/json_writer.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/text/print.hpp"
#include "core/text/utf8.hpp"

namespace velo::core {

json_writer& json_writer::open(char begin, char close) {
  separate();
  to_ += begin;
  open_ += close;
  comma_ = false;
  return *this;
}

json_writer& json_writer::end() {
  comma_ = false;
  separate();
  to_ += open_.back();
  open_.pop_back();
  comma_ = true;
  return *this;
}

json_writer& json_writer::key(const char* name) {
  separate();
  append_json_string(to_, name);
  to_ += wide_ ? ": " : ":";
  comma_ = false;
  return *this;
}

json_writer& json_writer::value(const char* string) {
  if (string == nullptr) return null();
  separate();
  append_json_string(to_, string);
  comma_ = true;
  return *this;
}

json_writer& json_writer::value(double number) {
  separate();
  append_number(to_, number);
  comma_ = true;
  return *this;
}

json_writer& json_writer::value(double number, int digits) {
  separate();
  append(to_, "%.*g", digits, number);
  comma_ = true;
  return *this;
}

json_writer& json_writer::raw(const char* json) {
  separate();
  to_ += json;
  comma_ = true;
  return *this;
}

json_writer& json_writer::line(const char* indent) {
  indent_ = indent;
  return *this;
}

void json_writer::separate() {
  if (comma_) to_ += wide_ && indent_ == nullptr ? ", " : ",";
  if (indent_ != nullptr) to_.append("\n").append(indent_);
  indent_ = nullptr;
}

void append_number(std::string& to, double value) {
  char digits[64];
  const bool plain = value == 0 || (std::fabs(value) >= 1e-4 && std::fabs(value) < 1e15);
  const auto form = plain ? std::chars_format::fixed : std::chars_format::scientific;
  to.append(digits, std::to_chars(digits, digits + sizeof digits, value, form).ptr);
}

void append_json_string(std::string& to, const char* source) {
  to += '"';
  for (const char* c = source; *c != 0; ++c) {
    const auto byte = static_cast<unsigned char>(*c);
    if (byte == '"' || byte == '\\') {
      to += '\\';
      to += *c;
    } else if (byte == '\n') {
      to += "\\n";
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      to += escape;
    } else if (const std::size_t bytes = utf8_character(c); bytes > 0) {
      to.append(c, bytes);
      c += bytes - 1;
    } else {
      to += '?';
    }
  }
  to += '"';
}

}  // namespace velo::core
