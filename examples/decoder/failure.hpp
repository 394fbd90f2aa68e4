// Failures that a user can mend: bad settings, missing data, a damaged checkpoint, a full disk.
//
// A failure carries one sentence about what is wrong and where. It is thrown where it is found,
// caught once in main, printed, and turned into exit code 1.
#pragma once

#include <stdexcept>

namespace decoder {

// The program's name, with which its messages begin; main sets it first.
inline const char* program_name = "decoder";

struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws a failure; `format` is printf's.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...);

}  // namespace decoder
