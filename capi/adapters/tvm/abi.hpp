// The part of tvm-ffi's stable C layout that the entries read: a tagged 16-byte value, and the
// objects that tensors, strings and lists of integers arrive in.
//
// Written from the published description of the ABI; sizes and offsets are asserted here. Only
// values are read and nothing is retained, so no reference is ever counted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace velo::adapters::tvm {

enum type : std::int32_t {
  type_none = 0,
  type_int = 1,
  type_bool = 2,
  type_float = 3,
  type_opaque_pointer = 4,
  type_dl_tensor = 7,
  type_raw_string = 8,
  type_small_string = 11,
  type_string = 65,
  type_shape = 69,
  type_tensor = 70,
  type_array = 71
};

struct value {
  std::int32_t type;
  std::uint32_t small_length;  // of a small string
  union {
    std::int64_t integer;
    double real;
    void* pointer;
    const char* string;
    char small[8];
  };
};
static_assert(sizeof(value) == 16 && offsetof(value, integer) == 8);

// Every object begins with 24 bytes: reference counts, type, deleter. What follows is ours to read.
constexpr std::size_t object_header = 24;

struct bytes {
  const char* data;
  std::size_t size;
};
struct shape {
  const std::int64_t* data;
  std::size_t size;
};
struct sequence {
  const value* data;
  std::int64_t size;
};

template <class Content>
const Content& content_of(const void* object) {
  return *reinterpret_cast<const Content*>(static_cast<const char*>(object) + object_header);
}

}  // namespace velo::adapters::tvm
