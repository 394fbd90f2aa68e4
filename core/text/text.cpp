// Texts of a fixed length (text.hpp).
#include "core/text/text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdarg>
#include <cstring>

#include "core/text/print.hpp"

namespace velo::core {

text::text(const char* format, ...) {
  va_list values;
  va_start(values, format);
  print(buffer, sizeof buffer, format, values);
  va_end(values);
}

namespace detail {

void pieces::add(std::string_view piece) noexcept {
  const std::size_t length = std::min(piece.size(), static_cast<std::size_t>(end_ - at_));
  std::memcpy(at_, piece.data(), length);
  at_ += length;
  *at_ = 0;
}

void pieces::add_signed(std::int64_t number) noexcept {
  char digits[24];
  add(std::string_view(
      digits, static_cast<std::size_t>(std::to_chars(digits, digits + 24, number).ptr - digits)));
}

void pieces::add_unsigned(std::uint64_t number) noexcept {
  char digits[24];
  add(std::string_view(
      digits, static_cast<std::size_t>(std::to_chars(digits, digits + 24, number).ptr - digits)));
}

}  // namespace detail
}  // namespace velo::core
