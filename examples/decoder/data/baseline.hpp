// The size of the validation text under zlib -9: the baseline that a language model has to beat.
#pragma once

#include <string_view>

namespace decoder {

// Bits that zlib at level 9 needs for a byte of `text`. It may refer back to the last 32 KiB of
// `primer`.
double zlib_bits_per_byte(std::string_view text, std::string_view primer = {});

}  // namespace decoder
