// The field table of every operator, as the generator writes it from abi/spec/ops.json.
//
// An args struct is a uint32 struct_size, a reserved uint32, and then one 8-byte word per field: a
// pointer, an int64_t or a double. That uniformity is what lets one piece of code check, copy,
// name, describe and bind every operator. The tables are constant-initialized and live in read-only
// memory.
#pragma once

#include <cstdint>

#include "core/handle/handle.hpp"
#include "ops/operator/tensor.hpp"
#include "velo/types.h"

namespace velo::ops {

enum class field_kind : std::uint8_t {
  tensor,
  tensors,  // a velo_tensors: the field's conditions hold for each tensor
  handle,
  i64,
  f64,
  boolean,
  enumeration,
  ints,
  text
};

struct enumerator {
  const char* name;  // short name used by name: "bsnd"
  std::int64_t value;
};

struct field {
  const char* name;
  const char* doc;
  field_kind kind;
  const core::handle_kind* handle;  // of a handle, else nullptr
  bool read;                        // tensor, tensors: its elements are read
  bool output;                      // tensor, tensors: written by the operator
  bool optional;                    // may be NULL: any pointer
  bool strided;  // tensor, tensors: the operator takes strides; otherwise views must be compact
  std::uint32_t dtypes;  // dtype_bits that an input tensor may have; 0: `infer` decides
  // Bit i: may share memory with field i exactly (same first byte, shape and strides). In a list
  // each tensor may share it with the one of the same index.
  std::uint32_t may_alias;
  std::int64_t default_int;  // i64, boolean, enumeration
  double default_real;       // f64
  double minimum, maximum;   // inclusive bounds of i64 and f64; of f64 at most those of float32
  const enumerator* enumerators;
  int enumerator_count;
};

// The largest error of an output: absolute + relative * |value| + largest * the largest magnitude
// in the same output. All zero: exact.
struct error_bound {
  std::uint32_t dtype;  // of the output, core::dtype_bit
  bool mixed;           // of float32 outputs of a call with a narrower floating tensor
  double absolute, relative, largest;
};

// How far from the exact value an output may be whose largest magnitude is this.
inline double allowed_error(const error_bound& bound, double exact, double largest) {
  return bound.absolute + bound.relative * (exact < 0 ? -exact : exact) + bound.largest * largest;
}

struct op_spec {
  const char* name;         // "rms_norm"
  const char* function;     // "velo_rms_norm"
  const char* family;       // "norm"
  const char* gradient_of;  // nullptr for a forward operator
  const char* aliases;      // comma-separated other names: "npu_rms_norm"
  const char* doc;
  const char* source;
  const char* accuracy;       // the bound in words
  const error_bound* bounds;  // and in numbers, by dtype of the output
  int bound_count;
  double least_input, most_input;  // the bounds hold for nonzero inputs of these magnitudes
  const char* bytes;
  std::uint32_t since;  // ABI that introduced it, major * 100 + minor
  const field* fields;
  int field_count;
  std::uint32_t struct_size;  // 8 + 8 * field_count
};

}  // namespace velo::ops
