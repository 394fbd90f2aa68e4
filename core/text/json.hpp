// Reading and writing JSON. json.cpp is the only file of the library that includes jansson.
//
// `json` is a shared, read-only view of a parsed document. A malformed text is VELO_ERR_PARSE with
// line and column; duplicate keys are malformed. Writing needs no tree (json_writer.hpp). Not hot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/json_writer.hpp"

struct json_t;  // jansson's node

namespace velo::core {

class json {
 public:
  enum class type { null, boolean, integer, real, string, array, object };

  // argument: the text's name in a failure, "desc.config_json".
  static json parse(const char* text, const char* argument);
  // The same for a text that may contain zero bytes, which are malformed.
  static json parse(std::string_view text, const char* argument);

  json(const json& other);
  json& operator=(const json& other);
  ~json();

  type kind() const;
  const char* kind_name() const;  // "an object"
  bool boolean() const;           // each of these needs that kind; real() also takes an integer
  std::int64_t integer() const;
  double real() const;
  const char* string() const;  // UTF-8, valid as long as the document

  std::size_t size() const;          // of an array or object, else 0
  json at(std::size_t index) const;  // of an array
  bool has(const char* key) const;
  json get(const char* key) const;  // of an object that has the key

  // Calls body(key, value) for every member of an object, in the text's order.
  template <class Body>
  void each(Body&& body) const {
    for (void* at_member = first(); at_member != nullptr; at_member = after(at_member))
      body(key_of(at_member), value_of(at_member));
  }

 private:
  explicit json(json_t* node) : node_(node) {}  // takes over a reference

  void* first() const;
  void* after(void* member) const;
  static const char* key_of(void* member);
  static json value_of(void* member);

  json_t* node_;
};

}  // namespace velo::core
