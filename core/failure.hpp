// The one exception that velo throws inside: a status code and the facts that a user needs
// (argument, expected, got, cause).
//
// Checks throw it, and the guard at the C boundary catches it and copies it into the thread's error
// record. Its text is in fixed buffers, so reporting a failure never allocates. Not hot: a failure
// costs a throw.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/text/text.hpp"
#include "velo/status.h"

namespace velo::core {

struct failure {
  velo_status code = VELO_OK;
  std::int32_t rank = -1;   // the rank at fault; -1: the failure concerns no rank
  char function[64] = "";   // the C function that failed; empty: the one whose guard catches this
  char argument[64] = "";   // the argument at fault as the caller spells it: "gamma",
                            // "args.struct_size", "config.threads"
  char expected[192] = "";  // what was expected: "float32 or bfloat16", "[.., 4096]"
  char got[192] = "";       // the actual value: "int64", "[8, 4095]"
  char cause[256] = "";     // the underlying error, if any: an errno text, a loader message
};

// Throws a failure. A text that is nullptr counts as empty.
[[noreturn]] void fail(velo_status code, const char* argument, const char* expected,
                       const char* got, const char* cause = "");

// The exception in flight as a failure; call it only inside a catch block. bad_alloc becomes
// VELO_ERR_MEMORY, any other foreign exception VELO_ERR_INTERNAL with its what() as the cause.
failure current_failure() noexcept;

// Copies a text into a buffer of `capacity` bytes, with a zero byte at the end. A longer text is
// cut between UTF-8 characters. Invalid UTF-8 bytes become question marks.
void copy_text(char* buffer, std::size_t capacity, const char* source) noexcept;

}  // namespace velo::core
