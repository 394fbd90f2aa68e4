// A file that a user names, written whole beside its place and then put there, so that a reader
// sees the file before or the new one. Only a regular file, or none, may be there.
#pragma once

#include <functional>
#include <string>

#include "examples/decoder/files/file.hpp"

namespace decoder {

// Refuses what is there now, unless it is a file that holds tensors, or a place where no file can
// be made.
void require_replaceable_tensors(const std::string& path);

void replace_file(const std::string& path, const std::function<void(durable_file&)>& write);

}  // namespace decoder
