// Throwing failures, and turning any exception in flight into one.
#include "core/failure.hpp"

#include <cstring>
#include <exception>
#include <new>

#include "core/text/utf8.hpp"

namespace velo::core {

void copy_text(char* buffer, std::size_t capacity, const char* source) noexcept {
  if (capacity == 0) return;
  std::size_t length = 0;
  for (const char* at = source == nullptr ? "" : source; *at != 0;) {
    const std::size_t bytes = utf8_character(at);
    if (length + (bytes == 0 ? 1 : bytes) >= capacity) break;
    if (bytes == 0) {
      buffer[length++] = '?';
      ++at;
    } else
      for (std::size_t i = 0; i < bytes; ++i) buffer[length++] = *at++;
  }
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

}  // namespace velo::core
