// Reads a mask line by line.
#include "tools/velo/mask_file.hpp"

#include "tools/velo/commands.hpp"
#include "tools/velo/text_file.hpp"

namespace command {

std::vector<std::uint8_t> mask_of(const std::string& file, std::int64_t sequence) {
  const std::string text = read_file(file);
  std::vector<std::uint8_t> mask;
  std::int64_t line = 1, column = 0;
  const auto end_line = [&] {
    if (column != 0 && column != sequence)
      throw input_error(file + ":" + std::to_string(line) + ": expected " +
                        std::to_string(sequence) + " characters, got " + std::to_string(column));
    ++line, column = 0;
  };
  for (const char c : text) {
    if (c == '\n') {
      end_line();
      continue;
    }
    if (c == ' ' || c == '\r') continue;
    if (c != '0' && c != '1')
      throw input_error(file + ":" + std::to_string(line) + ": expected 0 or 1");
    mask.push_back(c == '1' ? 1 : 0);
    ++column;
  }
  end_line();
  const auto wanted = static_cast<std::size_t>(sequence) * static_cast<std::size_t>(sequence);
  if (mask.size() != wanted)
    throw input_error(file + ": expected " + std::to_string(sequence) + " lines of " +
                      std::to_string(sequence) + " characters");
  return mask;
}

}  // namespace command
