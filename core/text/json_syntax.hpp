// Whether a text is well-formed JSON, found without memory: tells a wrong text from a reader that
// ran out of memory. Of the grammar alone: neither UTF-8, sizes of numbers nor repeated keys are
// looked at. Not hot.
#pragma once

namespace velo::core {

bool is_json(const char* text) noexcept;

}  // namespace velo::core
