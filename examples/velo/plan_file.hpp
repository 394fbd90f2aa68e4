// Files of the memory commands: plans read from them, texts written to them.
#pragma once

#include <string>
#include <velo/velo.hpp>

namespace command {

// The buffers of a file, added to a plan. What makes no sense is an input_error with file, line and
// column.
void read_into(const velo::plan& plan, velo_plan_format format, const std::string& file);

// Throws input_error when the file cannot be written whole.
void write_file(const std::string& file, const std::string& text);

}  // namespace command
