// Escaping names, formatting bytes, and colors.
#include "core/text/svg.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/text/text.hpp"

namespace velo::core::svg {

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
    out += concat(count, " B");
  } else if (count < 10 << 20) {
    append(out, "%.1f KiB", value / 1024);
  } else if (value < 10.0 * (1 << 30)) {
    append(out, "%.1f MiB", value / (1 << 20));
  } else {
    append(out, "%.1f GiB", value / (1 << 30));
  }
  return out;
}

// Hues step by the golden angle, so that neighbors differ much, however many there are. There are
// two saturations and three lightnesses.
std::string fill(std::uint64_t index) {
  if (index < std::size(fills)) return fills[index];
  const double hue = std::fmod(static_cast<double>(index) * 137.50776, 360);
  const double lightness = 0.38 + 0.07 * static_cast<double>(index % 3);
  const double reach = lightness * (index / 3 % 2 == 0 ? 0.7 : 0.45);
  const auto part = [&](double place) {
    const double k = std::fmod(place + hue / 30, 12);
    const double value = lightness - reach * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<int>(std::lround(255 * value));
  };
  std::string out;
  append(out, "#%02x%02x%02x", part(0), part(8), part(4));
  return out;
}

}  // namespace velo::core::svg
