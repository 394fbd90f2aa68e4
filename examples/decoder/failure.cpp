// Formats the sentence of a failure.
#include "examples/decoder/failure.hpp"

#include <cstdarg>
#include <cstdio>
#include <string>

namespace decoder {

void fail(const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string sentence(static_cast<size_t>(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
  std::vsnprintf(sentence.data(), sentence.size() + 1, format, again);
  va_end(again);
  va_end(arguments);
  throw failure(sentence);
}

}  // namespace decoder
