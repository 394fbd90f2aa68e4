// Sets a locale for the duration of a call. newlocale holds the "C" locale ready, and freelocale
// does not free it.
#include "core/text/print.hpp"

#include <locale.h>
#include <algorithm>
#include <clocale>
#include <cstdio>

namespace velo::core {

int print(char* buffer, std::size_t capacity, const char* format, std::va_list values) noexcept {
  const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const locale_t before = uselocale(plain);
  const int length = std::vsnprintf(buffer, capacity, format, values);
  uselocale(before);
  freelocale(plain);
  return length;
}

void append(std::string& to, const char* format, ...) {
  char buffer[512];
  std::va_list values;
  va_start(values, format);
  const int length = print(buffer, sizeof buffer, format, values);
  va_end(values);
  to.append(buffer, std::min<std::size_t>(length, sizeof buffer - 1));
}

}  // namespace velo::core
