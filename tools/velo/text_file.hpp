// Files of the commands: texts read into plans and schedules, and written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <velo/velo.hpp>

namespace command {

// Throw input_error when the file cannot be read or written whole.
std::string read_file(const std::string& file);
void write_file(const std::string& file, const std::string& text);

// Throws as write_file would, before work whose result the file is to hold. The path stays as it
// is.
void require_writable(const std::string& file);

// The line that holds a row of a table; rows are counted from 0 behind the names of the columns,
// and empty lines are none.
std::size_t line_of_row(const std::string& file, std::int64_t row);

// Throws an input_error with the file, line and column of a text that velo refused.
[[noreturn]] void refuse_text(const std::string& file, const velo::error& failure);

// A plan or a schedule reads a file.
template <class Reader>
void read_into(const Reader& to, std::int32_t format, const std::string& file) {
  const std::string text = read_file(file);
  try {
    to.read(format, text.data(), text.size());
  } catch (const velo::error& failure) {
    refuse_text(file, failure);
  }
}

}  // namespace command
