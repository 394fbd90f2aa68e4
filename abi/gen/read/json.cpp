// Reading through jansson, and finding the line of a path (json.hpp).
#include "abi/gen/read/json.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace velo::gen {
namespace {

// Walks well-formed JSON text; only what is needed to skip values and find members.
struct walker {
  const std::string& text;
  std::size_t at = 0;

  void space() {
    while (at < text.size() && std::string(" \t\r\n").find(text[at]) != std::string::npos) ++at;
  }
  std::string string() {  // at the opening quote
    const std::size_t from = ++at;
    while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
    return text.substr(from, at++ - from);
  }
  void skip() {
    space();
    int depth = 0;
    do {
      const char c = text[at];
      if (c == '"') {
        string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      if (depth < 0) return;
      ++at;
    } while (at < text.size() &&
             (depth > 0 || std::string(",}] \n\r\t").find(text[at]) == std::string::npos));
  }
  bool enter(const std::string& key) {  // at an object: to the value of `key`
    space();
    if (at >= text.size() || text[at] != '{') return false;
    for (++at; at < text.size();) {
      space();
      if (text[at] != '"') return false;
      const bool found = string() == key;
      space();
      ++at;  // the colon
      space();
      if (found) return true;
      skip();
      space();
      if (text[at] == ',') ++at;
    }
    return false;
  }
  bool enter(int index) {  // at an array: to its element
    space();
    if (at >= text.size() || text[at] != '[') return false;
    ++at;
    for (int i = 0; i < index; ++i) {
      skip();
      space();
      if (at >= text.size() || text[at] != ',') return false;
      ++at;
    }
    space();
    return true;
  }
};

const char* type_name(const json_t* value) {
  switch (json_typeof(value)) {
    case JSON_OBJECT:
      return "an object";
    case JSON_ARRAY:
      return "an array";
    case JSON_STRING:
      return "a string";
    case JSON_INTEGER:
      return "an integer";
    case JSON_REAL:
      return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
      return "a boolean";
    case JSON_NULL:
      return "null";
  }
  return "nothing";
}

}  // namespace

int line_of(const std::string& text, const std::string& path) {
  walker walk{text};
  for (std::size_t i = 0; i < path.size();) {
    bool found = false;
    if (path[i] == '[') {
      const std::size_t end = path.find(']', i);
      found = walk.enter(std::stoi(path.substr(i + 1, end - i - 1)));
      i = end + 1;
    } else {
      if (path[i] == '.') ++i;
      const std::size_t end = std::min(path.find_first_of(".[", i), path.size());
      found = walk.enter(path.substr(i, end - i));
      i = end;
    }
    if (!found) return 1;
  }
  return 1 + static_cast<int>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(walk.at), '\n'));
}

document::document(const std::string& name) : file(name) {
  std::ifstream in(name, std::ios::binary);
  if (!in) throw spec_error{name + ": cannot be read"};
  std::ostringstream buffer;
  buffer << in.rdbuf();
  text = buffer.str();
  json_error_t error;
  root = json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error);
  if (root == nullptr) {
    throw spec_error{name + ":" + std::to_string(error.line) + ":" + std::to_string(error.column) +
                     ": " + error.text};
  }
}

document::~document() {
  json_decref(root);
}

void node::fail(const std::string& message) const {
  const std::string where = document_->file + ":" + std::to_string(line_of(document_->text, path_));
  throw spec_error{where + ": " + (path_.empty() ? "" : path_ + ": ") + message};
}

void node::require_object() const {
  if (!json_is_object(value_)) fail(std::string("expected an object, got ") + type_name(value_));
}

void node::only(std::initializer_list<const char*> keys) const {
  require_object();
  std::string known;
  for (const char* key : keys) known += (known.empty() ? "" : ", ") + std::string(key);
  const char* key = nullptr;
  json_t* value = nullptr;
  json_object_foreach(value_, key, value) {
    const bool good =
        std::any_of(keys.begin(), keys.end(), [&](const char* k) { return std::string(k) == key; });
    if (!good) (*this)[key].fail("unknown key; known here: " + known);
  }
}

std::vector<std::string> node::keys() const {
  require_object();
  std::vector<std::string> out;
  const char* key = nullptr;
  json_t* value = nullptr;
  json_object_foreach(value_, key, value) out.emplace_back(key);
  return out;
}

bool node::has(const char* key) const {
  require_object();
  return json_object_get(value_, key) != nullptr;
}

node node::operator[](const char* key) const {
  require_object();
  json_t* value = json_object_get(value_, key);
  if (value == nullptr) fail(std::string("the key \"") + key + "\" is missing");
  return node(*document_, value, path_.empty() ? key : path_ + "." + key);
}

std::vector<node> node::items() const {
  if (!json_is_array(value_)) fail(std::string("expected an array, got ") + type_name(value_));
  std::vector<node> out;
  std::size_t index = 0;
  json_t* value = nullptr;
  json_array_foreach(value_, index, value) {
    out.push_back(node(*document_, value, path_ + "[" + std::to_string(index) + "]"));
  }
  return out;
}

std::vector<node> node::items(const char* key) const {
  return has(key) ? (*this)[key].items() : std::vector<node>();
}

std::string node::text() const {
  if (!json_is_string(value_)) fail(std::string("expected a string, got ") + type_name(value_));
  return json_string_value(value_);
}

std::string node::text(const char* key, const char* otherwise) const {
  return has(key) ? text(key) : otherwise;
}

std::vector<std::string> node::texts(const char* key) const {
  std::vector<std::string> out;
  for (const node& item : items(key)) out.push_back(item.text());
  return out;
}

std::int64_t node::integer() const {
  if (!json_is_integer(value_)) fail(std::string("expected an integer, got ") + type_name(value_));
  return json_integer_value(value_);
}

double node::number() const {
  if (!json_is_number(value_)) fail(std::string("expected a number, got ") + type_name(value_));
  return json_number_value(value_);
}

bool node::boolean() const {
  if (!json_is_boolean(value_))
    fail(std::string("expected true or false, got ") + type_name(value_));
  return json_is_true(value_);
}

bool node::boolean(const char* key, bool otherwise) const {
  return has(key) ? (*this)[key].boolean() : otherwise;
}

std::string node::dump(const char* less) const {
  json_t* some = json_copy(value_);
  if (less != nullptr) json_object_del(some, less);
  char* text = json_dumps(some, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
  std::string out = text;
  std::free(text);
  json_decref(some);
  return out;
}

}  // namespace velo::gen
