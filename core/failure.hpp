// The one exception velo throws inside: a status code with the facts a user needs (argument,
// expected, got, cause).
//
// It is thrown by checks and caught by the guard at the C boundary, which copies it into the
// thread's error record. Text is held in fixed buffers so that reporting a failure never allocates.
// Not hot: a failure costs a throw.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/text/text.hpp"
#include "velo/status.h"

namespace velo::core {

struct failure {
  velo_status code = VELO_OK;
  std::int32_t rank = -1;   // the rank at fault, -1 when ranks play no part
  char function[64] = "";   // the C function that failed; empty = the one whose guard catches this
  char argument[64] = "";   // the argument at fault as the caller spells it: "gamma",
                            // "args.struct_size", "config.threads"
  char expected[192] = "";  // what was expected: "float32 or bfloat16", "[.., 4096]"
  char got[192] = "";       // what came: "int64", "[8, 4095]"
  char cause[256] =
      "";  // what lies underneath, when something does: an errno text, a loader message
};

// Throws a failure. Any text may be nullptr, which reads as empty.
[[noreturn]] void fail(velo_status code, const char* argument, const char* expected,
                       const char* got, const char* cause = "");

// The exception in flight as a failure; call it inside a catch block only. bad_alloc becomes
// VELO_ERR_MEMORY, any other foreign exception VELO_ERR_INTERNAL with its what() as the cause.
failure current_failure() noexcept;

// Copies text into a buffer of `capacity` bytes, cut at a UTF-8 character if it does not fit,
// always zero-terminated. Bytes that are not UTF-8 become question marks.
void copy_text(char* buffer, std::size_t capacity, const char* source) noexcept;

}  // namespace velo::core
