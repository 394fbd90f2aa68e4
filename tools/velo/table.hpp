// Rows in aligned columns; the last column wraps under itself at 100 characters.
#pragma once

#include <string>
#include <vector>

namespace command {

class table {
 public:
  explicit table(std::vector<std::string> titles) { rows_.push_back(std::move(titles)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string str() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first one holds the titles
};

// A text broken into lines of at most `width` characters, each after the first indented.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace command
