// The vocabulary: the 256 bytes, and three special symbols after them.
//
// Every window begins with `bos`, in training, validation and sampling alike, so that the model
// always has a first symbol to predict the first byte from. `eos` and `pad` are reserved; a
// vocabulary larger than `vocabulary_size` is padding.
#pragma once

#include <cstdint>

namespace decoder {

constexpr std::int32_t bos = 256;
constexpr std::int32_t eos = 257;
constexpr std::int32_t pad = 258;
constexpr std::int64_t vocabulary_size = 259;

}  // namespace decoder
