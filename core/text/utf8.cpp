// Finding where a text stops being UTF-8, and refusing it.
#include "core/text/utf8.hpp"

#include <algorithm>
#include <cstring>

#include "core/failure.hpp"

namespace velo::core {
namespace {

text shown(char byte) {
  return byte == 0 ? text("a zero byte") : text("byte \\x%02x", static_cast<unsigned char>(byte));
}

}  // namespace

std::size_t find_no_text(std::string_view all) noexcept {
  for (std::size_t at = 0; at < all.size();) {
    char character[5] = {};
    std::memcpy(character, all.data() + at, std::min<std::size_t>(all.size() - at, 4));
    const std::size_t bytes = character[0] == 0 ? 0 : utf8_character(character);
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

void require_text(std::string_view all, const char* argument) {
  const std::size_t at = find_no_text(all);
  if (at == std::string_view::npos) return;
  fail(VELO_ERR_ARGUMENT, argument, "UTF-8 without zero bytes",
       text("%s at byte %zu", shown(all[at]).buffer, at));
}

void require_lines(std::string_view all, const char* argument) {
  const std::size_t at = find_no_text(all);
  if (at == std::string_view::npos) return;
  const std::string_view before = all.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t column = at - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  fail(VELO_ERR_ARGUMENT, text("%s, line %td, column %zu", argument, line, column),
       "UTF-8 without zero bytes", shown(all[at]));
}

}  // namespace velo::core
