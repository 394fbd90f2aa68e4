// How structs and texts cross the C boundary, the same for every entry.
//
// A struct begins with its size as its caller compiled it. Coming in: below the minimum, above
// 4096 or, of a shorter one, no multiple of its alignment is VELO_ERR_STRUCT, seen before anything
// else is read; a shorter one is completed with defaults; a longer one whose tail is not zero asks
// for what this library does not know, VELO_ERR_UNSUPPORTED. Going out: never a byte beyond the
// caller's size.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/failure.hpp"
#include "velo/types.h"

namespace velo::capi {

inline constexpr std::uint32_t max_struct_size = 4096;

// A pointer the caller must give.
template <class T>
T& required(T* pointer, const char* argument) {
  constexpr bool is_tensor = std::is_same_v<T, const velo_tensor>;
  if (pointer == nullptr)
    core::fail(VELO_ERR_NULL, argument, is_tensor ? "a tensor" : "a pointer", "NULL");
  return *pointer;
}

inline std::uint32_t struct_size(const void* given, std::uint32_t minimum, const char* argument) {
  if (given == nullptr) core::fail(VELO_ERR_NULL, argument, "a pointer to a struct", "NULL");
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < minimum || size > max_struct_size) {
    core::fail(VELO_ERR_STRUCT, core::text("%s.struct_size", argument),
               core::text("a size in [%u, %u]", minimum, max_struct_size), core::text("%u", size));
  }
  return size;
}

// A field that means nothing yet: whatever else stands there asks for what newer headers know.
template <class T, class = void>
struct reserved_word {
  static constexpr std::uint32_t of(const T&) { return 0; }
};
template <class T>
struct reserved_word<T, std::void_t<decltype(T::reserved)>> {
  static constexpr std::uint32_t of(const T& given) { return given.reserved; }
};

// The caller's struct over `complete`, which holds the defaults of what the caller's headers did
// not have. A size that no sizeof can be would end within a field.
template <class T>
T read_struct(const T* given, std::uint32_t minimum, const char* argument, T complete) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::uint32_t size = struct_size(given, minimum, argument);
  if (size < sizeof(T) && size % alignof(T) != 0)
    core::fail(VELO_ERR_STRUCT, core::text("%s.struct_size", argument),
               core::text("a multiple of %zu", alignof(T)), core::text("%u", size));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::uint32_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] == 0) continue;
    core::fail(VELO_ERR_UNSUPPORTED, core::text("%s.struct_size", argument),
               core::text("at most %zu bytes in use: this library knows no more fields", sizeof(T)),
               core::text("a value in byte %u, from newer headers", i));
  }
  std::memcpy(&complete, given, std::min<std::size_t>(size, sizeof(T)));
  complete.struct_size = sizeof(T);
  if (const std::uint32_t word = reserved_word<T>::of(complete); word != 0)
    core::fail(VELO_ERR_ARGUMENT, core::text("%s.reserved", argument), "0", core::text("%u", word));
  return complete;
}

// `value` into the caller's struct, whose struct_size stays.
template <class T>
void write_struct(T* given, std::uint32_t minimum, const char* argument, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::uint32_t size = struct_size(given, minimum, argument);
  value.struct_size = size;
  std::memcpy(given, &value, std::min<std::size_t>(size, sizeof(T)));
}

// A text for a caller's buffer, cut to its capacity and always zero-terminated; NULL with capacity
// 0 asks for the size alone.
inline void write_text(const char* value, char* buffer, std::uint64_t capacity,
                       std::uint64_t* needed) {
  if (buffer == nullptr && capacity > 0)
    core::fail(VELO_ERR_NULL, "buffer", "a buffer of `capacity` bytes", "NULL");
  if (buffer != nullptr) core::copy_text(buffer, capacity, value);
  if (needed != nullptr) *needed = std::strlen(value) + 1;
}

}  // namespace velo::capi
