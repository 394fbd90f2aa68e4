// A recursive walk over JSON that is known to be well formed: only strings, brackets
// and commas matter.
#include "examples/decoder/configuration/json_places.hpp"

#include <jansson.h>

#include <cstring>

#include "examples/decoder/files/json_memory.hpp"

namespace decoder {
namespace {

class walker {
 public:
  explicit walker(const std::string& text) : text_(text) {}

  std::map<std::string, place> places() {
    value("");
    return std::move(places_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  char take() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++here_.line;
      here_.column = 1;
    } else {
      ++here_.column;
    }
    return c;
  }

  void space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", peek())) take();
  }

  std::string string() {
    const size_t begin = at_;
    take();
    while (peek() != '"') {
      if (take() == '\\') take();
    }
    take();
    // jansson undoes the escapes, so that a key means here what it means there.
    json_t* decoded = json_loadb(&text_[begin], at_ - begin, JSON_DECODE_ANY, nullptr);
    std::string result = decoded ? json_string_value(decoded) : "";
    json_decref(decoded);
    require_json_memory();
    return result;
  }

  void object(const std::string& path) {
    take();
    for (space(); peek() != '}'; space()) {
      const std::string key = string();
      space();
      take();  // the colon
      value(path.empty() ? key : path + "." + key);
      space();
      if (peek() == ',') take();
    }
    take();
  }

  void array(const std::string& path) {
    take();
    space();
    for (int index = 0; peek() != ']'; ++index, space()) {
      value(path + "[" + std::to_string(index) + "]");
      space();
      if (peek() == ',') take();
    }
    take();
  }

  void value(const std::string& path) {
    space();
    places_[path] = here_;
    if (peek() == '{') return object(path);
    if (peek() == '[') return array(path);
    if (peek() == '"') return static_cast<void>(string());
    while (at_ < text_.size() && !std::strchr(",]} \t\r\n", peek())) take();
  }

  const std::string& text_;
  size_t at_ = 0;
  place here_;
  std::map<std::string, place> places_;
};

}  // namespace

std::map<std::string, place> json_places(const std::string& text) {
  return walker(text).places();
}

}  // namespace decoder
