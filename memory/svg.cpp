// Text put together, names made harmless.
#include "memory/svg.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace velo::memory::svg {

void append(std::string& out, const char* format, ...) {
  char buffer[512];
  va_list values;
  va_start(values, format);
  const int length = std::vsnprintf(buffer, sizeof buffer, format, values);
  va_end(values);
  out.append(buffer, std::min<std::size_t>(length, sizeof buffer - 1));
}

std::string escaped(const std::string& name) {
  std::string out;
  for (const char c : name.substr(0, 100)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += c >= ' ' && c <= '~' ? c : '.';
    }
  }
  return out;
}

std::string bytes(std::int64_t count) {
  std::string out;
  const double value = static_cast<double>(count);
  if (count < 10 << 10) {
    append(out, "%lld B", static_cast<long long>(count));
  } else if (count < 10 << 20) {
    append(out, "%.1f KiB", value / 1024);
  } else if (value < 10.0 * (1 << 30)) {
    append(out, "%.1f MiB", value / (1 << 20));
  } else {
    append(out, "%.1f GiB", value / (1 << 30));
  }
  return out;
}

}  // namespace velo::memory::svg
