// Widths count characters, not bytes: UTF-8 continuation bytes take no room.
#include "tools/velo/table.hpp"

#include <algorithm>

namespace command {
namespace {

constexpr std::size_t page = 100;

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  }));
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string all;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (used > 0 && used + 1 + width_of(word) > width) {
      all += '\n' + std::string(indent, ' ');
      used = 0;
    } else if (used > 0) {
      all += ' ';
      ++used;
    }
    all += word;
    used += width_of(word);
    at = end + 1;
  }
  return all;
}

std::string table::str() const {
  std::vector<std::size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  std::string all;
  for (const auto& row : rows_) {
    std::size_t indent = 0;
    for (std::size_t c = 0; c + 1 < row.size(); ++c) {
      all += row[c] + std::string(widths[c] - width_of(row[c]) + 2, ' ');
      indent += widths[c] + 2;
    }
    all += wrapped(row.back(), page > indent + 30 ? page - indent : 30, indent);
    while (!all.empty() && all.back() == ' ') all.pop_back();
    all += '\n';
  }
  return all;
}

}  // namespace command
