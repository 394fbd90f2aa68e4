// The mask of a sequence in a file: a line a query, a character a key, 1 where the query does not
// see the key, else 0. Spaces and empty lines count nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace command {

// S lines of S characters; S is at most 65536. Throws input_error with the file and its line.
std::vector<std::uint8_t> mask_of(const std::string& file, std::int64_t sequence);

}  // namespace command
