// core::json over jansson, with jansson's reference counts.
#include "core/text/json.hpp"

#include <jansson.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include "core/failure.hpp"
#include "core/host/memory.hpp"
#include "core/text/json_syntax.hpp"
#include "core/text/utf8.hpp"

namespace velo::core {

namespace {

// If memory runs out, jansson reports either no error, or an invalid token that it could not store.
bool ran_out_of_memory(const json_error_t& error, const char* source) {
  switch (json_error_code(&error)) {
    case json_error_unknown:
    case json_error_out_of_memory:
      return true;
    case json_error_invalid_syntax:
    case json_error_premature_end_of_input:
    case json_error_end_of_input_expected:
      return is_json(source);
    default:
      return false;
  }
}

}  // namespace

// Reads the text twice, because jansson drops characters of a string when memory runs out within
// it, and continues.
json json::parse(const char* source, const char* argument) {
  json_error_t error;
  const auto read = [&] {
    error = {};  // jansson does not set the code of an error without a text
    return json_loads(source, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
  };
  if (json_t* node = again_with_memory(read)) {
    const json first(node);
    const json second(again_with_memory(read));
    if (json_equal(first.node_, second.node_) == 0) throw std::bad_alloc();
    return first;
  }
  if (ran_out_of_memory(error, source)) throw std::bad_alloc();
  fail(VELO_ERR_PARSE, argument, "JSON",
       text("line %d, column %d: %s", error.line, error.column, error.text));
}

json json::parse(std::string_view source, const char* argument) {
  const std::size_t zero = source.find('\0');
  if (zero == std::string_view::npos) return parse(std::string(source).c_str(), argument);
  const std::string_view before = source.substr(0, zero);
  fail(VELO_ERR_PARSE, argument, "JSON",
       text("line %td, column %zu: a zero byte", std::count(before.begin(), before.end(), '\n') + 1,
            zero - (before.rfind('\n') + 1) + 1));
}

json::json(const json& other) : node_(json_incref(other.node_)) {}

json& json::operator=(const json& other) {
  json copy(other);
  std::swap(node_, copy.node_);
  return *this;
}

json::~json() {
  json_decref(node_);
}

json::type json::kind() const {
  switch (json_typeof(node_)) {
    case JSON_OBJECT:
      return type::object;
    case JSON_ARRAY:
      return type::array;
    case JSON_STRING:
      return type::string;
    case JSON_INTEGER:
      return type::integer;
    case JSON_REAL:
      return type::real;
    case JSON_TRUE:
    case JSON_FALSE:
      return type::boolean;
    default:
      return type::null;
  }
}

const char* json::kind_name() const {
  constexpr const char* names[] = {"null",     "a boolean", "an integer", "a real number",
                                   "a string", "an array",  "an object"};
  return names[static_cast<int>(kind())];
}

bool json::boolean() const {
  return json_is_true(node_);
}
std::int64_t json::integer() const {
  return json_integer_value(node_);
}
double json::real() const {
  return json_number_value(node_);
}
const char* json::string() const {
  return json_string_value(node_);
}

std::size_t json::size() const {
  return kind() == type::object ? json_object_size(node_) : json_array_size(node_);
}
json json::at(std::size_t index) const {
  return json(json_incref(json_array_get(node_, index)));
}
bool json::has(const char* key) const {
  return json_object_get(node_, key) != nullptr;
}
json json::get(const char* key) const {
  return json(json_incref(json_object_get(node_, key)));
}

void* json::first() const {
  return json_object_iter(node_);
}
void* json::after(void* member) const {
  return json_object_iter_next(node_, member);
}
const char* json::key_of(void* member) {
  return json_object_iter_key(member);
}
json json::value_of(void* member) {
  return json(json_incref(json_object_iter_value(member)));
}

}  // namespace velo::core
