// The element types that velo knows, in one table: type, bit in a set of types, and name.
//
// Every module uses it to name an element type, count its bytes or compare two, so a failure says
// "float32" whichever call refuses it. Not hot except for the inline functions.
#pragma once

#include <cstdint>

#include "core/failure.hpp"
#include "core/round_up.hpp"
#include "velo/types.h"

namespace velo::core {

inline constexpr velo_dtype f32{VELO_DTYPE_FLOAT, 32, 1};
inline constexpr velo_dtype bf16{VELO_DTYPE_BFLOAT, 16, 1};
inline constexpr velo_dtype f16{VELO_DTYPE_FLOAT, 16, 1};
inline constexpr velo_dtype i32{VELO_DTYPE_INT, 32, 1};
inline constexpr velo_dtype i64{VELO_DTYPE_INT, 64, 1};
inline constexpr velo_dtype i8{VELO_DTYPE_INT, 8, 1};
inline constexpr velo_dtype i4{VELO_DTYPE_INT, 4, 1};
inline constexpr velo_dtype u8{VELO_DTYPE_UINT, 8, 1};

// Sets of the types that operators take.
enum dtype_bit : std::uint32_t {
  dtype_f32 = 1,
  dtype_bf16 = 2,
  dtype_f64 = 4,
  dtype_f16 = 8,
  dtype_i32 = 16,
  dtype_i64 = 32,
  dtype_u8 = 64,
  dtype_bool = 128,
  dtype_i8 = 256,
  dtype_u64 = 512,
  dtype_i4 = 1024
};

constexpr bool operator==(velo_dtype a, velo_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
constexpr bool operator!=(velo_dtype a, velo_dtype b) {
  return !(a == b);
}

bool is_known(velo_dtype type);               // whether velo makes tensors of it
std::uint32_t dtype_bit_of(velo_dtype type);  // one dtype_bit, 0 for types that no operator takes
// dtype_bit_of for the types of most tensors, 0 for all others.
constexpr std::uint32_t quick_dtype_bit(velo_dtype type) {
  if (type == f32) return dtype_f32;
  if (type == bf16) return dtype_bf16;
  if (type == f16) return dtype_f16;
  if (type == i32) return dtype_i32;
  return type == i64 ? std::uint32_t{dtype_i64} : 0;
}
text dtype_name(velo_dtype type);      // "float32"; any type has a name
text dtype_names(std::uint32_t bits);  // "float32, bfloat16 or float16"
text device_name(velo_device device);  // "device cpu:0"

// Whether an element has 1, 2, 4 or 8 bytes and one lane, as a copy requires. Masks take half the
// time of comparisons one by one.
constexpr bool is_whole_bytes(velo_dtype t) {
  constexpr unsigned codes = 1u << VELO_DTYPE_INT | 1u << VELO_DTYPE_UINT | 1u << VELO_DTYPE_FLOAT |
                             1u << VELO_DTYPE_BFLOAT | 1u << VELO_DTYPE_BOOL;
  constexpr std::uint64_t sizes = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 8;  // bytes
  return t.lanes == 1 && t.bits % 8 == 0 && t.bits <= 64 && (sizes >> t.bits / 8 & 1) != 0 &&
         t.code < 32 && (codes >> t.code & 1) != 0;
}

// Bytes of one element. Two int4 share a byte; bytes_of() counts those correctly.
constexpr std::int64_t element_bytes(velo_dtype type) {
  return ceil_div(std::int64_t{type.bits}, 8);
}
constexpr std::int64_t bytes_of(velo_dtype type, std::int64_t elements) {
  return type.bits < 8 ? ceil_div(elements * type.bits, 8) : elements * element_bytes(type);
}

}  // namespace velo::core
