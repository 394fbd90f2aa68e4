// A JSON value together with the place it came from, so that a wrong spec is answered with file,
// line and what was expected.
//
// jansson keeps no positions; a node keeps its path from the root instead, and the text is walked
// along that path only when a message is needed. Invariant: every accessor either returns what was
// asked for or throws.
#pragma once

#include <jansson.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace velo::gen {

struct spec_error {
  std::string text;  // "abi/spec/ops/norm.json:12: ops[0].fields[2].kind: ..."
};

struct document {
  std::string file, text;
  json_t* root = nullptr;
  explicit document(const std::string& file);
  ~document();
  document(const document&) = delete;
  document& operator=(const document&) = delete;
};

// 1-based line of the value at `path` ("ops[0].name") in a well-formed JSON text; 1 when the path
// leads nowhere.
int line_of(const std::string& text, const std::string& path);

class node {
 public:
  explicit node(const document& from) : document_(&from), value_(from.root) {}

  [[noreturn]] void fail(const std::string& message) const;
  void only(
      std::initializer_list<const char*> keys) const;  // an object with these keys and no others

  std::vector<std::string> keys() const;  // of an object
  bool has(const char* key) const;
  node operator[](const char* key) const;          // fails when absent
  std::vector<node> items() const;                 // of an array
  std::vector<node> items(const char* key) const;  // of an array member; empty when absent

  std::string text() const;
  std::string text(const char* key) const { return (*this)[key].text(); }
  std::string text(const char* key, const char* otherwise) const;
  std::vector<std::string> texts(const char* key) const;  // empty when absent
  std::int64_t integer() const;
  double number() const;
  bool boolean() const;
  bool boolean(const char* key, bool otherwise) const;
  bool is_text() const { return json_is_string(value_); }
  bool is_array() const { return json_is_array(value_); }
  bool is_object() const { return json_is_object(value_); }
  // Compact, keys in the order of the text; of an object, less a key.
  std::string dump(const char* less = nullptr) const;

 private:
  node(const document& from, json_t* value, std::string path)
      : document_(&from), value_(value), path_(std::move(path)) {}
  void require_object() const;

  const document* document_;
  json_t* value_;
  std::string path_;
};

}  // namespace velo::gen
