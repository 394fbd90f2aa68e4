// Failures: thrown with their facts, and any exception in flight turned into one.
#include "core/failure.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

namespace velo::core {

void copy_text(char* buffer, std::size_t capacity, const char* source) noexcept {
  if (capacity == 0) return;
  std::size_t length = source == nullptr ? 0 : std::strlen(source);
  if (length >= capacity) {
    length = capacity - 1;
    // Bytes 10xxxxxx continue a character: step back to where the one that does not fit begins.
    while (length > 0 && (static_cast<unsigned char>(source[length]) & 0xc0u) == 0x80u) --length;
  }
  if (length > 0) std::memcpy(buffer, source, length);
  buffer[length] = 0;
}

void fail(velo_status code, const char* argument, const char* expected, const char* got,
          const char* cause) {
  failure f;
  f.code = code;
  copy_text(f.argument, sizeof f.argument, argument);
  copy_text(f.expected, sizeof f.expected, expected);
  copy_text(f.got, sizeof f.got, got);
  copy_text(f.cause, sizeof f.cause, cause);
  throw f;
}

failure current_failure() noexcept {
  failure f;
  try {
    throw;
  } catch (const failure& known) {
    return known;
  } catch (const std::bad_alloc&) {
    f.code = VELO_ERR_MEMORY;
    copy_text(f.cause, sizeof f.cause, "out of memory");
  } catch (const std::exception& other) {
    f.code = VELO_ERR_INTERNAL;
    copy_text(f.cause, sizeof f.cause, other.what());
  } catch (...) {
    f.code = VELO_ERR_INTERNAL;
    copy_text(f.cause, sizeof f.cause, "an exception of unknown type");
  }
  return f;
}

text::text(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::vsnprintf(buffer, sizeof buffer, format, values);
  va_end(values);
}

}  // namespace velo::core
