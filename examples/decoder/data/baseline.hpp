// What zlib -9 makes of the validation text: the bar a language model has to clear.
#pragma once

#include <string_view>

namespace decoder {

// Bits that zlib at level 9 needs for a byte of `text`. `primer`, if any, is text it may refer back
// to (its last 32 KiB).
double zlib_bits_per_byte(std::string_view text, std::string_view primer = {});

}  // namespace decoder
