// A parameter's name is the last word of its declaration, or stands behind the star of a pointer to
// a function (declaration.hpp).
#include "abi/gen/emit/declaration.hpp"

namespace velo::gen {
namespace {

std::string trim(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

bool word_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

declared read_parameter(const std::string& text) {
  if (is_function(text)) {
    const std::size_t name = text.find("(*") + 2, end = text.find(')', name);
    return {text.substr(name, end - name), text.substr(0, name) + text.substr(end)};
  }
  std::size_t end = text.size();
  while (end > 0 && word_character(text[end - 1])) --end;
  return {text.substr(end), trim(text.substr(0, end))};
}

}  // namespace

bool is_function(const std::string& type) {
  return type.find("(*") != std::string::npos;
}

signature read_signature(const std::string& type) {
  const std::size_t open = type.find("(*");
  const std::size_t list = type.find('(', type.find(')', open));
  signature out{trim(type.substr(0, open)), {}};
  int depth = 0;
  std::string one;
  for (std::size_t at = list + 1; at < type.size(); ++at) {
    const char c = type[at];
    if (depth == 0 && (c == ',' || c == ')')) {
      if (!trim(one).empty()) out.parameters.push_back(read_parameter(trim(one)));
      one.clear();
      continue;
    }
    depth += (c == '(') - (c == ')');
    one += c;
  }
  return out;
}

}  // namespace velo::gen
