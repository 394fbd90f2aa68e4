// The one exception velo throws inside: a status code with the facts a user needs (argument, expected, got).
//
// It is thrown by checks and caught by the guard at the C boundary, which copies it into the thread's error record. Text is
// held in fixed buffers so that reporting a failure never allocates. Not hot: a failure costs a throw.
#pragma once

#include <cstdarg>
#include <cstdint>

#include "velo/status.h"

namespace velo::core {

struct failure {
  velo_status code = VELO_OK;
  char argument[64] = "";   // the argument at fault as the caller spells it: "gamma", "args.struct_size", "config.threads"
  char expected[192] = "";  // what was expected: "float32 or bfloat16", "[.., 4096]"
  char got[192] = "";       // what came: "int64", "[8, 4095]"
  char cause[256] = "";     // what lies underneath, when something does: an errno text, a loader message
};

// Throws a failure; `expected` and `got` are printf formats that share no arguments, so each has its own call.
[[noreturn]] void fail(velo_status code, const char* argument, const char* expected, const char* got);

// A small printf into a fixed buffer, for the texts of a failure: fail(.., "rank 2", text("rank %d", x.ndim)).
struct text {
  char buffer[192];
  __attribute__((format(printf, 2, 3))) explicit text(const char* format, ...);
  operator const char*() const { return buffer; }
};

}  // namespace velo::core
