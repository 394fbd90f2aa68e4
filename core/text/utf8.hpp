// The one check of texts from outside: UTF-8 without zero bytes. It precedes storing them and
// writing them to records, logs, JSON and tables.
//
// A checked text is written as it was read: no writer cuts it at a zero byte or puts a question
// mark into it. Cost: a pass over the text.
#pragma once

#include <cstddef>
#include <string_view>

#include "velo/status.h"

namespace velo::core {

// Bytes of the character at `at`, a zero-terminated text. Returns 0 if no valid character begins
// there: a stray or missing byte, an overlong form, a surrogate, or a code beyond U+10FFFF.
inline std::size_t utf8_character(const char* at) noexcept {
  const auto byte = [at](int i) { return static_cast<unsigned char>(at[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2   ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  const unsigned char lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (length == 0 || byte(1) < lowest || byte(1) > highest) return 0;
  for (int i = 2; i < static_cast<int>(length); ++i)
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
  return length;
}

// The position where a text stops being UTF-8 without zero bytes; npos if it does not.
std::size_t find_no_text(std::string_view all) noexcept;

// Throw a failure of the argument if a text is invalid. require_lines adds the position to the
// argument: "text, line 2, column 5".
void require_text(std::string_view all, const char* argument);
void require_lines(std::string_view all, const char* argument);

}  // namespace velo::core
