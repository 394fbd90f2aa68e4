// Checks the JSON grammar without allocating. When jansson fails without a clear error, this tells
// malformed text from a lack of memory. It checks neither UTF-8, the size of numbers nor repeated
// keys. Not hot.
#pragma once

namespace velo::core {

bool is_json(const char* text) noexcept;

}  // namespace velo::core
