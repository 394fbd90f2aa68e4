// How structs and texts cross the C boundary, in the same way for every entry. The args structs of
// operators, whose fields are slots of 8 bytes, have rules of their own in ops/call/call.cpp.
//
// A struct begins with its size in the caller's headers. Reading: a size below the minimum or above
// 4096, or a shorter one that is no multiple of the alignment, is VELO_ERR_STRUCT, detected before
// anything else is read. A shorter struct is completed with defaults. A longer struct with a
// nonzero tail uses fields that this library does not know: VELO_ERR_UNSUPPORTED. Writing: never
// beyond the caller's size.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/failure.hpp"
#include "core/handle/guard.hpp"
#include "velo/types.h"

namespace velo::capi {

// A pointer that the caller must give.
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
  if (size < minimum || size > core::max_struct_size) {
    core::fail(VELO_ERR_STRUCT, core::text("%s.struct_size", argument),
               core::text("a size in [%u, %u]", minimum, core::max_struct_size),
               core::text("%u", size));
  }
  return size;
}

// A reserved field. A value other than 0 has a meaning only in newer headers.
template <class T, class = void>
struct reserved_word {
  static constexpr std::uint32_t of(const T&) { return 0; }
};
template <class T>
struct reserved_word<T, std::void_t<decltype(T::reserved)>> {
  static constexpr std::uint32_t of(const T& given) { return given.reserved; }
};

// Copies the caller's struct over `complete`, which holds defaults for the fields that the caller's
// headers lack. A size that is no possible sizeof would end within a field.
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

// Copies `value` to the caller's struct, except struct_size.
template <class T>
void write_struct(T* given, std::uint32_t minimum, const char* argument, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::uint32_t size = struct_size(given, minimum, argument);
  value.struct_size = size;
  std::memcpy(given, &value, std::min<std::size_t>(size, sizeof(T)));
}

// A list that the caller has room in, or NULL where `capacity` is 0. things: "ranks".
inline void require_room(const void* list, std::int64_t capacity, const char* argument,
                         const char* things) {
  if (capacity < 0) core::fail(VELO_ERR_ARGUMENT, "capacity", "0 or more", core::number(capacity));
  if (list == nullptr && capacity > 0)
    core::fail(VELO_ERR_NULL, argument, core::text("room for `capacity` %s", things), "NULL");
}

// Copies a text to the caller's buffer, cut to its capacity and zero-terminated. NULL with capacity
// 0 asks only for the size.
inline void write_text(const char* value, char* buffer, std::uint64_t capacity,
                       std::uint64_t* needed) {
  if (buffer == nullptr && capacity > 0)
    core::fail(VELO_ERR_NULL, "buffer", "a buffer of `capacity` bytes", "NULL");
  if (buffer != nullptr) core::copy_text(buffer, capacity, value);
  if (needed != nullptr) *needed = std::strlen(value) + 1;
}

}  // namespace velo::capi
